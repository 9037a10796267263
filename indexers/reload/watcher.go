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
	// DefaultRetry is how long after it failed a config is checked and applied again. The time doubles with
	// each failure, up to a minute.
	DefaultRetry = time.Second
)

// Options say what to watch. Files are required.
type Options struct {
	// Files are the files of the config, all of them together. Required.
	Files []string
	// Check looks at a config before it is applied, to compare it with the types of a cluster for example.
	// Run calls it again, at longer and longer intervals, for a config that it refused: a server may answer
	// later, or have a type. Default: that it has no errors is enough.
	Check func(ctx context.Context, config *indexers.Config) error
	// Apply takes a config over, or returns an error and changes nothing. It is called when something differs
	// from the config that is in force, and not for the first one, which New returns. What it refuses Run
	// tries again, as with Check. Default: nothing.
	Apply func(ctx context.Context, update Update) error
	// Report is told of each time that the files were read again and were not what they had been, and when
	// another try at the same files came out otherwise than the one before. Default: nobody is.
	Report func(Outcome)
	// Quiet is how long the folders of the files have to be left alone before they are read. Where that never
	// happens, they are read after twenty times as long. Default: DefaultQuiet.
	Quiet time.Duration
	// Retry is how long after it was refused a config is checked and applied again, for the first time.
	// Default: DefaultRetry.
	Retry time.Duration
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
	// refused is what Check or Apply said of that, if they refused it, under reading.
	refused error

	mu struct {
		sync.Mutex
		config *indexers.Config
	}
}

// New loads the config for the first time. It fails when the config has errors or Check refuses it. Nothing
// is watched before Run.
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
	if options.Retry <= 0 {
		options.Retry = DefaultRetry
	}
	w := &Watcher{options: options}
	w.read = readTogether(options.Files)
	config, err := indexers.Parse(w.read...)
	if err == nil {
		err = w.check(ctx, config)
	}
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

// mostReads bounds how often files are read that are never the same twice.
const mostReads = 5

// readTogether reads files that belong together, again until two reads agree: those of a ConfigMap are all
// swapped at once, between the first and the last of them perhaps.
func readTogether(files []string) []indexers.Source {
	sources := indexers.ReadSources(files...)
	for reads := 1; len(files) > 1 && reads < mostReads; reads++ {
		again := indexers.ReadSources(files...)
		if slices.EqualFunc(sources, again, sameSource) {
			break
		}
		sources = again
	}
	return sources
}

func sameSource(a, b indexers.Source) bool {
	return a.Name == b.Name && bytes.Equal(a.Data, b.Data) && fmt.Sprint(a.Err) == fmt.Sprint(b.Err)
}

func (w *Watcher) check(ctx context.Context, config *indexers.Config) error {
	if w.options.Check == nil {
		return nil
	}
	return w.options.Check(ctx, config)
}

// Reload reads the files, and takes over what differs, before it returns; a program may call it for a signal.
// It returns what Report is told. When the files are what they were, it does nothing, unless Check or Apply
// refused them: then it tries again.
func (w *Watcher) Reload(ctx context.Context) Outcome {
	w.reading.Lock()
	defer w.reading.Unlock()
	sources := readTogether(w.options.Files)
	same, before := slices.EqualFunc(sources, w.read, sameSource), w.refused
	if same && before == nil {
		return Outcome{Config: w.Config()}
	}
	w.read, w.refused = sources, nil
	outcome := w.takeOver(ctx, sources)
	if ctx.Err() != nil && outcome.Err != nil {
		w.read = nil // it was not the config's fault
	}
	if again := same && outcome.Err != nil &&
		outcome.Err.Error() == before.Error(); w.options.Report != nil && !again {
		w.options.Report(outcome)
	}
	return outcome
}

// wasRefused reports whether Check or Apply refused the config that was read last.
func (w *Watcher) wasRefused() bool {
	w.reading.Lock()
	defer w.reading.Unlock()
	return w.refused != nil
}

func (w *Watcher) takeOver(ctx context.Context, sources []indexers.Source) Outcome {
	old := w.Config()
	config, err := indexers.Parse(sources...)
	if err != nil {
		return Outcome{Config: old, Err: err}
	}
	if w.refused = w.check(ctx, config); w.refused != nil {
		return Outcome{Config: old, Err: w.refused}
	}
	changes := indexers.Diff(old, config)
	if len(changes) > 0 && w.options.Apply != nil {
		if w.refused = w.options.Apply(ctx,
			Update{Old: old, New: config, Changes: changes}); w.refused != nil {
			return Outcome{Config: old, Err: w.refused}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.config = config
	return Outcome{Config: config, Changes: changes}
}
