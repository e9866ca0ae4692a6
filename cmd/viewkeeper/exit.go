package main

import (
	"context"
	"errors"
	"fmt"
)

// The exit statuses, a contract of docs/operations.md.
const (
	exitDone        = 0 // accepted, unchanged, answered
	exitRefused     = 1 // refused, or a check found something, or it failed
	exitUsage       = 2 // wrong usage
	exitUnreachable = 3 // nobody reachable
	exitTimeout     = 4 // timed out, or decided but not everywhere yet
)

// failure is an error that knows the exit status it ends the process with. A
// quiet one has been reported already.
type failure struct {
	code  int
	err   error
	quiet bool
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

func usagef(format string, args ...any) error {
	return &failure{code: exitUsage, err: fmt.Errorf(format, args...)}
}

func refusedf(format string, args ...any) error {
	return &failure{code: exitRefused, err: fmt.Errorf(format, args...)}
}

func unreachablef(format string, args ...any) error {
	return &failure{code: exitUnreachable, err: fmt.Errorf(format, args...)}
}

func timeoutf(format string, args ...any) error {
	return &failure{code: exitTimeout, err: fmt.Errorf(format, args...)}
}

// reported ends the process with a status and says nothing more.
func reported(code int) error {
	return &failure{code: code, err: fmt.Errorf("exit status %d", code), quiet: true}
}

// exitCode gives the status for what a command's RunE returned.
func exitCode(err error) int {
	var f *failure
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &f):
		return f.code
	case errors.Is(err, context.DeadlineExceeded):
		return exitTimeout
	}
	return exitRefused
}
