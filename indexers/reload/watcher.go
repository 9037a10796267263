package reload

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/crdcache/crdcache/indexers"
)

// Defaults of Options.
const (
	// DefaultPoll is the default of Options.PollInterval.
	DefaultPoll = time.Second
	// DefaultRetry is the default of Options.Retry.
	DefaultRetry = time.Second
)

// Options configure a Watcher.
type Options struct {
	// Files are the files of the config. Required.
	Files []string
	// Apply applies a config without errors, or returns an error and changes nothing. It is not called for
	// the first config, which New returns. After an error, Run retries it at increasing intervals: a server
	// may be unavailable or get a type later. Required.
	Apply func(ctx context.Context, config *indexers.Config) error
	// Report is called after changed files were read, and when a retry has another result than the previous
	// try. Optional.
	Report func(Outcome)
	// Retry is the first interval before a rejected config is tried again. It doubles with each failure, up
	// to a minute. Default: DefaultRetry.
	Retry time.Duration
	// PollInterval is the interval of reading the files. Default: DefaultPoll.
	PollInterval time.Duration
}

// Outcome is the result of reading the files.
type Outcome struct {
	// Config is the current config: the new one, or the previous one if Err is set.
	Config *indexers.Config
	// Err is the reason why the config was rejected: an *indexers.ConfigError, or the error of Apply.
	Err error
}

// String describes the outcome in one line, or with all errors.
func (o Outcome) String() string {
	if o.Err != nil {
		return fmt.Sprintf("the previous config stays in effect: %v", o.Err)
	}
	return "the config has changed"
}

// Status is the state of the files of a Watcher.
type Status struct {
	// Config is the current config.
	Config *indexers.Config
	// Loaded is the time at which the watcher read the files that are in effect.
	Loaded time.Time
	// Err is the reason why the current content of the files is not in effect, as in Outcome. It is nil if
	// the content is in effect.
	Err error
}

// String returns the time of Loaded, and the error.
func (s Status) String() string {
	text := "loaded at " + s.Loaded.Format(time.RFC3339)
	if s.Err != nil {
		text += "; " + Outcome{Err: s.Err}.String()
	}
	return text
}

// Metrics returns the result of the last reload and the time of the last successful one, like Prometheus'
// metrics of its own config.
func (s Status) Metrics() []indexers.MetricFamily {
	successful := 1.0
	if s.Err != nil {
		successful = 0
	}
	return []indexers.MetricFamily{
		{Name: "crdcache_config_last_reload_successful",
			Help:   "1 if the content of the config files is in effect; 0 if it was rejected.",
			Series: []indexers.MetricSeries{{Value: successful}}},
		{Name: "crdcache_config_last_reload_success_timestamp_seconds",
			Help:   "Time at which changed config files last took effect.",
			Series: []indexers.MetricSeries{{Value: float64(s.Loaded.UnixMilli()) / 1e3}}},
	}
}

type Watcher struct {
	options    Options
	reloadLock sync.Mutex
	// lastSources is the content of the last read, under reloadLock.
	lastSources []indexers.Source
	// rejection is the error of Apply for it, under reloadLock.
	rejection error

	status atomic.Pointer[Status]
}

// New loads the initial config. It returns an error if the config has errors. Call Run to watch the files.
func New(options Options) (*Watcher, error) {
	if len(options.Files) == 0 || options.Apply == nil {
		return nil, errors.New("reload: Options.Files and Options.Apply are required")
	}
	options.PollInterval = cmp.Or(max(options.PollInterval, 0), DefaultPoll)
	options.Retry = cmp.Or(max(options.Retry, 0), DefaultRetry)
	w := &Watcher{options: options}
	w.lastSources = indexers.ReadSources(options.Files...)
	config, err := indexers.Parse(w.lastSources...)
	if err != nil {
		return nil, err
	}
	w.status.Store(&Status{Config: config, Loaded: time.Now()})
	return w, nil
}

// Config returns the current config.
func (w *Watcher) Config() *indexers.Config { return w.Status().Config }

// Status returns the current config and whether it is that of the files.
func (w *Watcher) Status() Status { return *w.status.Load() }

func sameSource(a, b indexers.Source) bool {
	return a.Name == b.Name && bytes.Equal(a.Data, b.Data) && fmt.Sprint(a.Err) == fmt.Sprint(b.Err)
}

// Reload reads the files and applies differences before it returns, for example on a signal. It returns the
// outcome that Report receives. For unchanged files it does nothing, unless Apply failed: then it retries.
func (w *Watcher) Reload(ctx context.Context) Outcome {
	return w.reload(ctx, indexers.ReadSources(w.options.Files...))
}

func (w *Watcher) reload(ctx context.Context, sources []indexers.Source) Outcome {
	w.reloadLock.Lock()
	defer w.reloadLock.Unlock()
	unchanged, previousRejection := slices.EqualFunc(sources, w.lastSources, sameSource), w.rejection
	if unchanged && previousRejection == nil {
		return Outcome{Config: w.Config()}
	}
	w.lastSources, w.rejection = sources, nil
	outcome := w.apply(ctx, sources)
	switch current := w.Status(); {
	case outcome.Err == nil:
		w.status.Store(&Status{Config: outcome.Config, Loaded: time.Now()})
	case ctx.Err() != nil: // not an error of the config
		w.lastSources = nil
		return outcome
	default:
		current.Err = outcome.Err
		w.status.Store(&current)
	}
	if isRepeated := unchanged && outcome.Err != nil &&
		outcome.Err.Error() == previousRejection.Error(); w.options.Report != nil && !isRepeated {
		w.options.Report(outcome)
	}
	return outcome
}

// isNew reports whether the content of the files differs from the last one that Reload read.
func (w *Watcher) isNew(sources []indexers.Source) bool {
	w.reloadLock.Lock()
	defer w.reloadLock.Unlock()
	return !slices.EqualFunc(sources, w.lastSources, sameSource)
}

func (w *Watcher) apply(ctx context.Context, sources []indexers.Source) Outcome {
	old := w.Config()
	config, err := indexers.Parse(sources...)
	if err != nil {
		return Outcome{Config: old, Err: err}
	}
	if w.rejection = w.options.Apply(ctx, config); w.rejection != nil {
		return Outcome{Config: old, Err: w.rejection}
	}
	return Outcome{Config: config}
}

// maxRetry is the maximum interval between two attempts to apply a rejected config.
const maxRetry = time.Minute

// Run reads the files in each PollInterval until ctx ends, and applies each new config. A changed file takes
// effect when two reads agree, so that it is not read while it is being written, nor between two files of a
// ConfigMap, which are swapped at once. It always returns nil.
func (w *Watcher) Run(ctx context.Context) error {
	ticker := time.NewTicker(w.options.PollInterval)
	defer ticker.Stop()
	previous := indexers.ReadSources(w.options.Files...)
	retryAt, failures := time.Time{}, 0
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		sources := indexers.ReadSources(w.options.Files...)
		isSettled, isNew := slices.EqualFunc(sources, previous, sameSource), w.isNew(sources)
		if previous = sources; !isSettled || !isNew && time.Now().Before(retryAt) {
			continue
		}
		if isNew {
			failures = 0
		}
		if w.reload(ctx, sources).Err != nil {
			retryAt = time.Now().Add(min(w.options.Retry<<min(failures, 20), max(w.options.Retry, maxRetry)))
			failures++
		}
	}
}
