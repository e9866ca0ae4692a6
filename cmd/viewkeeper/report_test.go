package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/viewkeeper/viewkeeper"
)

// A wait for nodes that fails takes nothing from the decision: it is printed with its
// id, and the exit status says that it is not known who has it.
func TestDecidedAndNobodyToAsk(t *testing.T) {
	for _, form := range []string{formTable, formJSON} {
		var out strings.Builder
		s := &session{app: &app{stdio: stdio{out: &out}, Settings: Settings{Output: form}}}
		ans := &answer{Decision: viewkeeper.Decision{StatementID: "some-id", Verdict: viewkeeper.Accepted, Version: 7}, waitErr: errors.New("no right to read"), raw: []byte(`"accepted"`)}
		err := s.report(ans, "", 0)
		if exitCode(err) != exitTimeout || !strings.Contains(err.Error(), "some-id") || !strings.Contains(err.Error(), "no right to read") || !strings.Contains(out.String(), "accepted") {
			t.Errorf("as %s: %d %v, printed %s", form, exitCode(err), err, out.String())
		}
	}
}

func TestARefusedCreateHasNoColumns(t *testing.T) {
	var out strings.Builder
	printDecision(&out, viewkeeper.Decision{
		Verdict: viewkeeper.Refused, Code: viewkeeper.CodeBind, Message: "no such table",
		Changed: []viewkeeper.Change{{Name: viewkeeper.MakeName("", "oops"), Action: viewkeeper.ActionCreated}},
	}, "", 0)
	if !strings.HasSuffix(out.String(), "  would have created main.oops\n") {
		t.Errorf("%s", out.String())
	}
}
