package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/viewkeeper/viewkeeper/internal/kafka"
)

func TestClassify(t *testing.T) {
	for _, c := range []struct {
		err   error
		kind  kafka.Kind
		retry bool
	}{
		{&kafka.MissingTopicError{Topic: "t"}, kafka.KindMissing, true},
		{sarama.ErrUnknownTopicOrPartition, kafka.KindMissing, true},
		{&kafka.TopicChangedError{}, kafka.KindChanged, true},
		{sarama.ErrOffsetOutOfRange, kafka.KindChanged, true},
		{&kafka.ProblemsError{}, kafka.KindSettings, true},
		{sarama.ConfigurationError("x"), kafka.KindSettings, false},
		{sarama.ErrUnsupportedVersion, kafka.KindSettings, false},
		{&kafka.TooLargeError{}, kafka.KindTooLarge, false},
		{&kafka.NotWrittenError{Err: sarama.ErrTopicAuthorizationFailed}, kafka.KindDenied, true},
		{&kafka.ProblemsError{Problems: []kafka.Problem{{Setting: "cleanup.policy"}, {Missing: true}}}, kafka.KindMissing, true},
		{kafka.ErrNodeIDTaken, kafka.KindTaken, true},
		{sarama.ErrFencedInstancedId, kafka.KindTaken, true},
		{errors.New("goka says: " + sarama.ErrTopicAuthorizationFailed.Error()), kafka.KindDenied, true},
		{&kafka.AbandonedError{}, kafka.KindStopped, false},
		{context.Canceled, kafka.KindStopped, false},
		{context.DeadlineExceeded, kafka.KindAway, true},
		{io.EOF, kafka.KindAway, true},
		{sarama.ErrOutOfBrokers, kafka.KindAway, true},
		{sarama.ErrNotEnoughReplicas, kafka.KindAway, true},
		{&net.OpError{Op: "dial", Err: errors.New("no route")}, kafka.KindAway, true},
		{&net.OpError{Op: "read", Err: &os.SyscallError{Syscall: "read", Err: syscall.ETIMEDOUT}}, kafka.KindAway, true},
		{&fs.PathError{Op: "write", Path: "f", Err: syscall.ENOSPC}, kafka.KindOther, true},
		{syscall.EAGAIN, kafka.KindOther, true}, // a lock that another process has
		{errors.New("who knows"), kafka.KindOther, true},
		{nil, kafka.KindOther, false},
	} {
		err := c.err
		if err != nil {
			err = fmt.Errorf("doing something: %w", err)
		}
		if got := kafka.Classify(err); got.Kind != c.kind || got.Retry != c.retry || err != nil && got.Reason == "" {
			t.Errorf("%v is %+v", c.err, got)
		}
	}
}

// Settings that this client may not read are said to be hidden, and trusted or not.
func TestHiddenSettings(t *testing.T) {
	b, s := start(t)
	a := admin(t, s)
	if _, err := a.CreateTopics(t.Context(), flights); err != nil {
		t.Fatal(err)
	}
	b.Cluster().ControlKey(int16(kmsg.DescribeConfigs), func(r kmsg.Request) (kmsg.Response, error, bool) {
		b.Cluster().KeepControl()
		req := r.(*kmsg.DescribeConfigsRequest)
		res := req.ResponseKind().(*kmsg.DescribeConfigsResponse)
		for _, q := range req.Resources {
			one := kmsg.NewDescribeConfigsResponseResource()
			one.ResourceType, one.ResourceName, one.ErrorCode = q.ResourceType, q.ResourceName, kerr.TopicAuthorizationFailed.Code
			res.Resources = append(res.Resources, one)
		}
		return res, nil, true
	})
	for _, strict := range []bool{false, true} {
		problems, err := a.CheckTopics(t.Context(), flights, kafka.CheckOptions{HiddenFatal: strict})
		if err != nil || len(problems) != 4 || problems[0].Fatal != strict {
			t.Errorf("strict %v: %v, %v", strict, problems, err)
		}
	}
}

// The way out is the topic's own: the table can't be adopted.
func TestTopicChangedSaysTheWayOut(t *testing.T) {
	for topic, way := range map[string]string{flights.Table(): "viewkeeper restore", flights.Definitions(): "viewkeeper topics adopt"} {
		for _, other := range []string{"viewkeeper restore", "viewkeeper topics adopt"} {
			err := &kafka.TopicChangedError{Topic: topic, Known: "a", Found: "b"}
			if strings.Contains(err.Error(), other) != (other == way) {
				t.Errorf("%v", err)
			}
		}
	}
}
