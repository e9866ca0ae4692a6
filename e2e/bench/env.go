package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/internal/kafka"
)

// Env is what a figure is measured in.
type Env struct {
	Quick   bool
	N       int    // definitions: 10,000, or 2,000 when Quick
	Brokers string // host:port,host:port
	Dir     string // for data and logs; removed at the end
	Binary  string // bin/viewkeeper
	Log     func(format string, args ...any)

	mu     sync.Mutex
	loaded map[int]*Catalog
	made   int
}

// pick gives one of two numbers of repetitions.
func (e *Env) pick(quick, full int) int {
	if e.Quick {
		return quick
	}
	return full
}

func (e *Env) kafka() (kafka.Settings, error) {
	return kafka.NewSettings(viewkeeper.KafkaSettings{Brokers: strings.Split(e.Brokers, ","), ClientID: "bench"})
}

// newName is a name for a catalog or a topic that nothing else has.
func (e *Env) newName(what string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.made++
	return fmt.Sprintf("%s%d-%d", what, os.Getpid(), e.made)
}

// admin runs call with a connection of its own.
func (e *Env) admin(ctx context.Context, call func(*kafka.Admin) error) error {
	settings, err := e.kafka()
	if err != nil {
		return err
	}
	a, err := settings.OpenAdmin(ctx)
	if err != nil {
		return err
	}
	return errors.Join(call(a), a.Close())
}

// moduleRoot finds the folder of go.mod above the working directory.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("no go.mod above the working directory")
		}
		dir = filepath.Dir(dir)
	}
	return "", err
}

// machine says what the numbers were measured on.
func (e *Env) machine(engine string) string {
	memory := "memory unknown"
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		var kb int
		if _, err := fmt.Sscanf(string(text), "MemTotal: %d kB", &kb); err == nil {
			memory = fmt.Sprintf("%.0f GiB of memory", float64(kb)/(1<<20))
		}
	}
	broker := "brokers at " + e.Brokers
	if os.Getenv("KAFKA_DIR") != "" {
		broker = "Apache Kafka, as scripts/kafka starts it, on the same machine"
	}
	return fmt.Sprintf("%d definitions. %s/%s, %d cores, %s; %s; %s; %s.\nThe numbers are of this run on this machine, and promise nothing for another.",
		e.N, runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), memory, runtime.Version(), engine, broker)
}
