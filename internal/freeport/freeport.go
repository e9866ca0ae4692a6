// Package freeport finds addresses for servers that tests stop and start again.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// T is what is needed of a *testing.T.
type T interface {
	Helper()
	Fatal(args ...any)
}

// Addr is an address on this machine that nobody listens on now. Its port is below
// those that the system gives to outgoing connections, so that a server that is away
// for a while finds it free when it comes back.
func Addr(t T) string {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(22000)))
		if err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no free port between 10000 and 32000")
	return ""
}
