package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// freeAddr is an address on this machine that nobody listens on now, with a port below
// those that the system gives to outgoing connections.
func freeAddr() (string, error) {
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(22000)))
		if err != nil {
			continue
		}
		addr := l.Addr().String()
		return addr, l.Close()
	}
	return "", errors.New("no free port between 10000 and 32000")
}
