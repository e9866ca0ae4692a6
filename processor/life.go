package processor

import (
	"context"
	"encoding/json"
	"errors"
	"hash"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"github.com/lovoo/goka/storage"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/internal/fold"
	"github.com/viewkeeper/viewkeeper/internal/kafka"
)

// life is one goka processor with everything around it, from connecting to the first
// failure. It is never used again: after a failed write it is not known what the
// brokers have, and only reading the table again behind a new fence tells.
type life struct {
	cfg        *Config
	settings   kafka.Settings
	topics     kafka.Topics
	instanceID string
	guard      *kafka.Guard
	reached    *reached
	log        *slog.Logger
	metrics    *metrics
	board      *board
	now        func() time.Time
	load       loadJudge
	openSink   func(kafka.Settings) (sink, error)
	sweeps     sweeps
	troubles   *troubles

	admin *kafka.Admin
	sink  sink
	// table is what goka recovered in the present session.
	table *tableStorage
	// owner is nil while this process is none.
	owner atomic.Pointer[owner]
	// expelled says that another process has joined with our static member id.
	expelled atomic.Bool

	mu     sync.Mutex
	failed error // the first failure
}

func (l *life) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed == nil {
		l.failed = err
	}
}

func (l *life) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// run lives until ctx ends (nil) or something fails.
func (l *life) run(ctx context.Context) (err error) {
	if l.admin, err = l.settings.OpenAdmin(ctx); err != nil {
		return err
	}
	defer func() { _ = l.admin.Close() }()
	var changed *kafka.TopicChangedError
	if errors.As(l.guard.Err(), &changed) {
		// This life reads whatever table there is from its beginning. Whether it may be
		// owned is for the claim to say.
		l.guard.Accept(changed.Found)
	}
	if err := l.checkTopics(ctx); err != nil {
		return err
	}
	if l.sink, err = kafka.Bounded(ctx, func() (sink, error) { return l.openSink(l.settings) }, func(s sink) { _ = s.close() }); err != nil {
		return err
	}
	// Closing waits for what is under way, so that no write of this life comes after
	// the next one's fence unless the broker itself holds it back.
	defer func() { err = errors.Join(err, l.sink.close()) }()

	processor, err := kafka.Bounded(ctx, l.makeProcessor, nil)
	if err != nil {
		return errors.Join(l.guard.Err(), err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var watch sync.WaitGroup
	watch.Go(func() { l.watchTopics(ctx) })
	defer watch.Wait()
	defer cancel()

	err = processor.Run(ctx)
	l.leave(ctx)
	// goka's own text around an error says less. A table that is another one comes first:
	// whatever else failed over it, failed because of it.
	if changed := l.guard.Err(); changed != nil {
		err = changed
	} else if failure := l.failure(); failure != nil {
		err = failure
	}
	l.tellBlocked(err)
	return err
}

// tellBlocked tells the nodes why this process does not own the catalog, where the table
// must not be written. It is a courtesy, given again by each life that is blocked.
func (l *life) tellBlocked(err error) {
	var blocked *BlockedError
	if !errors.As(err, &blocked) {
		return
	}
	value, err := json.Marshal(viewkeeper.Blocked{Node: l.cfg.NodeID, Reasons: map[string]string{blocked.Reason: blocked.Detail}, At: l.now().UTC()})
	if err == nil {
		err = l.sink.send([]*sarama.ProducerMessage{topicMessage(l.topics.Nodes(), codec.Message{Key: []byte(viewkeeper.BlockedKey), Value: value})})
	}
	if err != nil {
		l.log.Debug("telling the nodes why this process does not own the catalog", "error", err)
	}
}

// makeProcessor puts goka's processor together.
func (l *life) makeProcessor() (*goka.Processor, error) {
	graph := goka.DefineGroup(l.topics.Group(),
		goka.Input(goka.Stream(l.topics.Definitions()), codec.Raw{}, l.callback),
		goka.Persist(codec.Raw{}))
	options := append(l.settings.ProcessorOptions(l.instanceID, l.guard, l.log),
		goka.WithConsumerGroupBuilder(l.groupBuilder),
		goka.WithProducerBuilder(func([]string, string, func() hash.Hash32) (goka.Producer, error) { return noProducer{}, nil }),
		goka.WithStorageBuilder(l.storageBuilder),
		goka.WithUpdateCallback(func(ctx goka.UpdateContext, s storage.Storage, key string, value []byte) error {
			return l.table.update(ctx, s, key, value)
		}))
	return goka.NewProcessor(l.settings.Brokers, graph, options...)
}

// storageBuilder begins a new fold; goka asks for a storage in each session.
func (l *life) storageBuilder(string, int32) (storage.Storage, error) {
	l.table = &tableStorage{fold: fold.New()}
	return l.table, nil
}

// callback is what goka calls for each statement. Deferring comes first, always: the
// offset is marked by the owner's writer and by nobody else.
func (l *life) callback(ctx goka.Context, value any) {
	done := ctx.DeferCommit()
	o := l.owner.Load()
	if o == nil {
		// A message that was in goka's channel when the owner ended.
		done(nil)
		return
	}
	text, _ := value.([]byte)
	m := codec.Message{Key: []byte(ctx.Key()), Value: text, Offset: ctx.Offset(), Time: ctx.Timestamp()}
	for key, value := range ctx.Headers() {
		m.Headers = append(m.Headers, codec.Header{Key: kafka.HeaderKey(key), Value: value})
	}
	o.handle(m, done)
}

// checkTopics refuses to work over topics with settings that lose data.
func (l *life) checkTopics(ctx context.Context) error {
	problems, err := l.admin.CheckTopics(ctx, l.topics, kafka.CheckOptions{
		Topics:      []string{l.topics.Definitions(), l.topics.Table(), l.topics.Decisions()},
		HiddenFatal: l.cfg.HiddenSettingsFatal})
	if err != nil {
		return err
	}
	if fatal := kafka.FatalOnes(problems); len(fatal) > 0 {
		l.board.stand(viewkeeper.ReasonTopicSettings, "")
		return &kafka.ProblemsError{Problems: fatal}
	}
	var advice []string
	for _, p := range problems {
		advice = append(advice, p.String())
	}
	l.board.stand(viewkeeper.ReasonTopicSettings, strings.Join(advice, "; "))
	return nil
}

// leaveTimeout bounds leaving the group, which is a courtesy.
const leaveTimeout = 2 * time.Second

// leave takes this process out of the group. A static member does not leave by
// itself, and the others would wait for its session to time out; it is for processes
// that are killed and come back. Whoever failed leaves too, so that another one gets
// its chance.
func (l *life) leave(ctx context.Context) {
	if l.expelled.Load() || kafka.Classify(l.failure()).Kind == kafka.KindTaken {
		return // the member of this id is another process now
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	_, err := kafka.Bounded(ctx, func() (struct{}, error) {
		admin, err := sarama.NewClusterAdmin(l.settings.Brokers, l.settings.Sarama())
		if err != nil {
			return struct{}{}, err
		}
		defer func() { _ = admin.Close() }()
		_, err = admin.RemoveMemberFromConsumerGroup(string(l.topics.Group()), []string{l.instanceID})
		return struct{}{}, err
	}, nil)
	if err != nil {
		l.log.Info("leaving the group failed; the others wait for the session to time out", "error", err)
	}
}
