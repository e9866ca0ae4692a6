package view

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/hashicorp/go-multierror"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/internal/kafka"
	"github.com/viewkeeper/viewkeeper/registry"
)

// Config is what a node is made of. Kafka, Catalog, NodeID and Base are needed.
type Config struct {
	// Kafka is how to reach the brokers.
	Kafka viewkeeper.KafkaSettings
	// Catalog is the name of the catalog to follow.
	Catalog string
	// NodeID names the node among all nodes of the catalog; two must not share one.
	NodeID string
	// HTTP is the address that clients reach the node at, for the nodes topic; ""
	// when it has no door.
	HTTP string

	// Base is what the node has before any DDL, and the planner that builds
	// definitions over it. It should be the node's own: see [registry.Base].
	Base *registry.Base
	// Applier, when set, gets the real views of each factory before it is served.
	Applier registry.Applier

	// DataDir holds the node's copy of the table and the history index. With "" there
	// is no copy, and the index is in memory; both are read from Kafka at each start.
	DataDir string
	// NoStartStale makes a node that starts while Kafka is away wait for it. Otherwise
	// it serves its copy of the table, with the age of that.
	NoStartStale bool
	// MaxStale is the age from which on what is served is too old to be ready with;
	// 5 minutes when 0. Negative: never too old.
	MaxStale time.Duration
	// HiddenSettingsFatal makes the node unready when it has no right to read the
	// topics' settings. Otherwise that is reported and they are trusted.
	HiddenSettingsFatal bool
	// ReadOnly keeps the node from writing to the nodes topic, so that it needs no
	// right to write at all. Other nodes do not see it then.
	ReadOnly bool

	// Log is where the node says what happens; slog.Default when nil.
	Log *slog.Logger
	// Registerer takes the node's metrics; none are kept when nil.
	Registerer prometheus.Registerer
}

// DefaultMaxStale is Config.MaxStale when it is 0.
const DefaultMaxStale = 5 * time.Minute

// timing are the periods of a node's clocks; tests have shorter ones.
type timing struct {
	monitor      time.Duration // between two looks at the topics
	settings     time.Duration // between two looks at their settings
	ping         time.Duration // deadline of such a look
	silent       time.Duration // a broker silent for this long gets a new view
	stop         time.Duration // deadline of goka's view to stop
	noOwner      time.Duration // without a heartbeat for this long there is no owner
	tick         time.Duration // between two looks at what only time changes
	publishMin   time.Duration // between two records on the nodes topic, in a small fleet
	publishMax   time.Duration
	gather       time.Duration // for which decisions gather before they are indexed
	live         time.Duration // age of a nodes record of a live node
	retryBroken  time.Duration // first wait before broken definitions are tried again
	retryMost    time.Duration
	buildBackoff time.Duration // first wait after a build that failed itself
	restartFirst time.Duration
	restartMost  time.Duration
	copyPause    time.Duration // what comes in it goes into one step of the copy
	plansFirst   time.Duration // from the first factory until the planner's answers are kept
	plansEvery   time.Duration // and again after that
	copyEvery    time.Duration // between two steps when nothing but time passes
	copyRetry    time.Duration // first wait after a step that failed
}

func defaultTiming() timing {
	return timing{
		monitor:      2 * time.Second,
		settings:     time.Minute,
		ping:         3 * time.Second,
		silent:       10 * time.Second,
		stop:         10 * time.Second,
		noOwner:      5 * time.Second,
		tick:         time.Second,
		publishMin:   250 * time.Millisecond,
		publishMax:   3 * time.Second,
		gather:       200 * time.Millisecond,
		live:         10 * time.Second,
		retryBroken:  5 * time.Second,
		retryMost:    5 * time.Minute,
		buildBackoff: 250 * time.Millisecond,
		restartFirst: 100 * time.Millisecond,
		restartMost:  5 * time.Second,
		copyPause:    100 * time.Millisecond,
		plansFirst:   5 * time.Second,
		plansEvery:   5 * time.Minute,
		copyEvery:    5 * time.Second,
		copyRetry:    5 * time.Second,
	}
}

// validate fills in defaults and names everything that is wrong.
func (c *Config) validate() (kafka.Settings, error) {
	var errs *multierror.Error
	settings, err := kafka.NewSettings(c.Kafka)
	if err != nil {
		errs = multierror.Append(errs, err)
	}
	if err := viewkeeper.CatalogName(c.Catalog); err != nil {
		errs = multierror.Append(errs, err)
	}
	if c.NodeID == "" || len(c.NodeID) > 255 || strings.ContainsFunc(c.NodeID, func(r rune) bool { return r < ' ' }) {
		errs = multierror.Append(errs, fmt.Errorf("node id %q: give each node one of its own, 1 to 255 bytes without control characters", c.NodeID))
	}
	if c.Base == nil {
		errs = multierror.Append(errs, errors.New("no base is given; make one with registry.NewBase"))
	}
	if c.MaxStale == 0 {
		c.MaxStale = DefaultMaxStale
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if errs.ErrorOrNil() != nil {
		return settings, fmt.Errorf("the node's settings: %w", errs)
	}
	return settings, nil
}
