package kafka_test

import (
	"errors"
	"testing"

	"github.com/hashicorp/go-multierror"

	"github.com/viewkeeper/viewkeeper/internal/kafka"
)

func TestSentence(t *testing.T) {
	inner := func() *multierror.Error { return multierror.Append(nil, errors.New("no right")) }
	list := multierror.Append(nil, errors.New("setup failed"), errors.Join(errors.New("the table"), inner()))
	for want, err := range map[string]error{
		"":                                     nil,
		"plain":                                errors.New("plain"),
		"no right":                             inner(),
		"setup failed; the table; no right":    list,
		"2 errors of mine":                     errors.New("2 errors of mine"),
		"starting partition 0: no right; more": errors.Join(multierror.Prefix(inner(), "starting partition 0:"), multierror.Append(nil, errors.New("* more"))),
	} {
		if got := kafka.Sentence(err); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
