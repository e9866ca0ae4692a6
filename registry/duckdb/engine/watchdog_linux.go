package engine

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
)

// watchInterval is how often a child's resident size is read. A child that takes
// 2 GB a second overshoots by 40 MB.
const watchInterval = 20 * time.Millisecond

// watchResident calls over once when the process's resident size is above limit.
// It returns when the process is gone or stop is closed.
func watchResident(pid int, limit int64, stop <-chan struct{}, over func(size int64)) {
	statm, err := os.Open(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return // it is gone already
	}
	defer statm.Close()
	page := int64(os.Getpagesize())
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	var buf [256]byte
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
		n, _ := statm.ReadAt(buf[:], 0)
		fields := bytes.Fields(buf[:n])
		if len(fields) < 2 {
			return
		}
		pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
		if err == nil && pages*page > limit {
			over(pages * page)
			return
		}
	}
}

// protect makes a child's death cheap and likely before the keeper's: no core
// dump, and the first that the system takes when memory runs out.
func protect() {
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("500"), 0)
}

// peakResident gives the largest resident size that a process had, now that it is
// gone.
func peakResident(state *os.ProcessState) int64 {
	if usage, ok := state.SysUsage().(*syscall.Rusage); ok {
		return usage.Maxrss << 10
	}
	return 0
}
