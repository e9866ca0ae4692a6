package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// treeCPU is what the process and its children, a keeper and its engines, have had of
// the processors until now, as Linux counts it: in steps of 10 ms. Elsewhere it is 0.
func treeCPU(pid int) (keeper, engines time.Duration) {
	paths, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is right
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		id, parent, took, ok := parseStat(string(text))
		switch {
		case !ok:
		case id == pid:
			keeper = took
		case parent == pid:
			engines += took
		}
	}
	return keeper, engines
}

// parseStat reads /proc/PID/stat, see proc(5): the name in the second field may hold
// anything, the last parenthesis ends it.
func parseStat(text string) (pid, parent int, took time.Duration, ok bool) {
	open, end := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return 0, 0, 0, false
	}
	pid, err := strconv.Atoi(strings.TrimSpace(text[:open]))
	fields := strings.Fields(text[end+1:])
	if err != nil || len(fields) < 13 {
		return 0, 0, 0, false
	}
	var user, system int64
	if _, err := fmt.Sscan(fields[1]+" "+fields[11]+" "+fields[12], &parent, &user, &system); err != nil {
		return 0, 0, 0, false
	}
	return pid, parent, time.Duration(user+system) * 10 * time.Millisecond, true
}
