package reload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/crdcache/crdcache/indexers"
)

// Defaults of Options.
const (
	// DefaultQuiet is how long files have to be left alone before they are read.
	DefaultQuiet = 100 * time.Millisecond
	// DefaultPoll is how often files are read that nobody told of.
	DefaultPoll = time.Minute
)

// Options say what to watch. Files are required.
type Options struct {
	// Files are the files of the config, all of them together. Required.
	Files []string
	// Check looks at a config before it is applied, to compare it with the types of a cluster for example.
	// Default: that it has no errors is enough.
	Check func(ctx context.Context, config *indexers.Config) error
	// Apply takes a config over, or returns an error and changes nothing. It is called when something differs
	// from the config that is in force, and not for the first one, which New returns. Default: nothing.
	Apply func(ctx context.Context, update Update) error
	// Report is told of each time that the files were read again and were not what they had been. Default:
	// nobody is.
	Report func(Outcome)
	// Quiet is how long files have to be left alone before they are read. Default: DefaultQuiet.
	Quiet time.Duration
	// Poll is how often files are read that nobody told of; negative: never. Default: DefaultPoll.
	Poll time.Duration
}

// Update is a config that is to be taken over.
type Update struct {
	// Old is in force, New is to be.
	Old, New *indexers.Config
	// Changes are what differs between them; there is at least one.
	Changes []indexers.Change
}

// Outcome is what came of reading the files again.
type Outcome struct {
	// Config is in force now: the new one, or, with Err, the one before.
	Config *indexers.Config
	// Changes are what was taken over; none when files changed without a difference that matters.
	Changes []indexers.Change
	// Err says why the one before stays in force: an *indexers.ConfigError with all that is wrong, or what
	// Check or Apply returned.
	Err error
}

// String says what happened in one line, or, for an error, with all that is wrong.
func (o Outcome) String() string {
	if o.Err != nil {
		return fmt.Sprintf("the config that was loaded before stays in force: %v", o.Err)
	}
	if len(o.Changes) == 0 {
		return "the config was written again; nothing differs"
	}
	names := make([]string, len(o.Changes))
	for i, c := range o.Changes {
		names[i] = c.Name
	}
	return fmt.Sprintf("the config has changed: %v", names)
}

// Watcher keeps a config up to date.
type Watcher struct {
	options Options
	// reading is held while files are read and applied, so that this happens in turn.
	reading sync.Mutex
	// read is what the files held last, under reading.
	read []indexers.Source

	mu struct {
		sync.Mutex
		config *indexers.Config
	}
}

// New loads the config for the first time. It fails when the config has errors or Check refuses it. Nothing is
// watched before Run.
func New(ctx context.Context, options Options) (*Watcher, error) {
	if len(options.Files) == 0 {
		return nil, errors.New("reload: there are no files to watch")
	}
	if options.Quiet <= 0 {
		options.Quiet = DefaultQuiet
	}
	if options.Poll == 0 {
		options.Poll = DefaultPoll
	}
	w := &Watcher{options: options}
	w.read = readAll(options.Files)
	config, err := w.load(ctx, w.read)
	if err != nil {
		return nil, err
	}
	w.mu.config = config
	return w, nil
}

// Config returns the config that is in force.
func (w *Watcher) Config() *indexers.Config {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.config
}

// readAll reads files; one that cannot be read has no data, which is never what a config is.
func readAll(files []string) []indexers.Source {
	sources := make([]indexers.Source, len(files))
	for i, name := range files {
		source, err := indexers.ReadSource(name)
		if err != nil {
			source.Data = nil
		}
		sources[i] = source
	}
	return sources
}

func sameSource(a, b indexers.Source) bool { return a.Name == b.Name && bytes.Equal(a.Data, b.Data) }

// load makes a config of what was read.
func (w *Watcher) load(ctx context.Context, sources []indexers.Source) (*indexers.Config, error) {
	config, err := indexers.Parse(sources...)
	if slices.ContainsFunc(sources, func(s indexers.Source) bool { return s.Data == nil }) {
		config, err = indexers.Load(w.options.Files...) // which says why a file cannot be read
	}
	if err != nil {
		return nil, err
	}
	if w.options.Check != nil {
		if err := w.options.Check(ctx, config); err != nil {
			return nil, err
		}
	}
	return config, nil
}

// Reload reads the files, and takes over what differs, before it returns; a program may call it for a signal. It
// returns what Report is told, and reports nothing when the files are what they were.
func (w *Watcher) Reload(ctx context.Context) Outcome {
	w.reading.Lock()
	defer w.reading.Unlock()
	sources := readAll(w.options.Files)
	if slices.EqualFunc(sources, w.read, sameSource) {
		return Outcome{Config: w.Config()}
	}
	w.read = sources
	outcome := w.takeOver(ctx, sources)
	if ctx.Err() != nil && outcome.Err != nil {
		w.read = nil // it was not the config's fault
	}
	if w.options.Report != nil {
		w.options.Report(outcome)
	}
	return outcome
}

func (w *Watcher) takeOver(ctx context.Context, sources []indexers.Source) Outcome {
	old := w.Config()
	config, err := w.load(ctx, sources)
	if err != nil {
		return Outcome{Config: old, Err: err}
	}
	changes := indexers.Diff(old, config)
	if len(changes) > 0 && w.options.Apply != nil {
		if err := w.options.Apply(ctx, Update{Old: old, New: config, Changes: changes}); err != nil {
			return Outcome{Config: old, Err: err}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.config = config
	return Outcome{Config: config, Changes: changes}
}
