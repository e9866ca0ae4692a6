package processor

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/hashicorp/go-multierror"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/internal/kafka"
	"github.com/viewkeeper/viewkeeper/registry"
)

// Config says what a processor works for, and with what. Kafka, Catalog, NodeID and
// Base are needed; everything else has a default.
type Config struct {
	// Kafka is how to reach the brokers.
	Kafka viewkeeper.KafkaSettings
	// Catalog is the catalog's name. Its topics must be there; the processor never
	// makes one.
	Catalog string
	// NodeID names this process in decisions, rows and heartbeats. No two processes
	// may have the same: it is also the group's static member id, with which a killed
	// process that comes back needs no rebalance, and the second process of a name
	// throws the first one out.
	NodeID string
	// Base holds the owner's base and planner. The processor is its only user while
	// it owns the catalog. The planner stays the caller's to close.
	Base *registry.Base

	// Log gets what happens; slog.Default when nil.
	Log *slog.Logger
	// Registerer gets the metrics; none are kept when nil.
	Registerer prometheus.Registerer

	// Heartbeat is the time between two heartbeat rows; 1 s by default.
	Heartbeat time.Duration
	// CheckTopics is the time between two looks at the topics' settings; 1 min by
	// default.
	CheckTopics time.Duration
	// HiddenSettingsFatal blocks the processor while it has no right to read the
	// topics' settings. Otherwise that is reported and they are trusted.
	HiddenSettingsFatal bool
	// PurgeAfter is how old a drop's row in the table must be before it is purged. A node
	// that was away for longer reads the whole table again. It must be longer than it
	// takes Kafka to compact the table. A week by default, at least a day.
	PurgeAfter time.Duration
	// ExitDeadline is how long Run may take to return once it was told to stop. A
	// silent broker holds sarama for many seconds; Run then gives up and says that
	// only a new process is safe. 30 s by default.
	ExitDeadline time.Duration

	// BatchBytes bounds the commit row that several statements share, in bytes of
	// JSON; 256 KiB by default. A larger statement gets one alone, up to RecordBytes.
	BatchBytes int
	// RecordBytes bounds any record; just below 8 MiB by default, which is also the
	// most. A statement that needs more is refused with TOO_LARGE.
	RecordBytes int
	// QueueBytes bounds what is judged and not yet written, in bytes of JSON; 4 MiB by
	// default. A full queue makes judging wait.
	QueueBytes int
}

// purgeAtLeast is the least PurgeAfter: nodes that are down over a night, or for a
// reading of the table (half a day at the most), must not miss that an old row was purged
// and then that it was there.
const purgeAtLeast = 24 * time.Hour

// check fills in defaults, and reports everything that is wrong at once.
func (c *Config) check() (kafka.Settings, error) {
	var errs *multierror.Error
	settings, err := kafka.NewSettings(c.Kafka)
	if err != nil {
		errs = multierror.Append(errs, err)
	}
	if err := viewkeeper.CatalogName(c.Catalog); err != nil {
		errs = multierror.Append(errs, err)
	}
	if c.NodeID == "" {
		errs = multierror.Append(errs, errors.New("no node id is given; name this process, for example by host and port"))
	}
	if c.Base == nil {
		errs = multierror.Append(errs, errors.New("no base is given; make one with registry.NewBase"))
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	duration := func(what string, d *time.Duration, otherwise time.Duration) {
		if *d < 0 {
			errs = multierror.Append(errs, fmt.Errorf("%s is %s; it must be above 0", what, *d))
		}
		if *d == 0 {
			*d = otherwise
		}
	}
	duration("Heartbeat", &c.Heartbeat, time.Second)
	duration("CheckTopics", &c.CheckTopics, time.Minute)
	duration("PurgeAfter", &c.PurgeAfter, 7*24*time.Hour)
	if c.PurgeAfter < purgeAtLeast {
		errs = multierror.Append(errs, fmt.Errorf("PurgeAfter (--purge-after) is %s; it must be %s or more: a node that was away for longer reads the whole table again", c.PurgeAfter, purgeAtLeast))
	}
	duration("ExitDeadline", &c.ExitDeadline, 30*time.Second)
	size := func(what string, n *int, otherwise, most int) {
		if *n < 0 || *n > most {
			errs = multierror.Append(errs, fmt.Errorf("%s is %d bytes; it must be between 1 and %d", what, *n, most))
		}
		if *n == 0 {
			*n = otherwise
		}
	}
	size("BatchBytes", &c.BatchBytes, 256<<10, kafka.MaxRecordBytes)
	size("RecordBytes", &c.RecordBytes, kafka.MaxRecordBytes, kafka.MaxRecordBytes)
	size("QueueBytes", &c.QueueBytes, 4<<20, 1<<30)
	return settings, errs.ErrorOrNil()
}
