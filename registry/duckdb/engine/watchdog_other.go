//go:build !linux

package engine

import "os"

// watchResident does nothing: the resident size of another process is read from
// /proc, which is Linux's.
func watchResident(_ int, _ int64, stop <-chan struct{}, _ func(size int64)) { <-stop }

func protect() {}

// peakResident is not known here.
func peakResident(*os.ProcessState) int64 { return 0 }
