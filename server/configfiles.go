package server

import (
	"context"
	"slices"

	"k8s.io/klog/v2"

	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/reload"
)

// loadSelection sets the first selection, and the watcher of the index configs.
func (c *typeCache) loadSelection(config *Config) (err error) {
	initial := &selection{types: slices.Clone(config.Types), indexes: &indexers.Config{},
		objects: &objectConfig{}, secrets: config.Secrets, storage: config.storage()}
	c.selection.Store(initial)
	if len(config.IndexConfigs) == 0 {
		return nil
	}
	c.configWatcher, err = reload.New(context.Background(), reload.Options{
		Files: config.IndexConfigs,
		Check: func(_ context.Context, indexes *indexers.Config) error {
			_, err := c.selection.Load().withIndexes(indexes).settings()
			return err
		},
		Apply: func(ctx context.Context, u reload.Update) error {
			return c.changeSelection(ctx, func(s *selection) { s.indexes = u.New })
		},
		Report: reportReload,
	})
	if err != nil {
		return err
	}
	logWarnings(c.configWatcher.Config())
	c.selection.Store(initial.withIndexes(c.configWatcher.Config()))
	return nil
}

// withIndexes returns a copy of the selection with other index configs.
func (s *selection) withIndexes(indexes *indexers.Config) *selection {
	next := *s
	next.indexes = indexes
	return &next
}

func reportReload(o reload.Outcome) {
	if o.Err != nil {
		klog.ErrorS(o.Err, "Index configs were rejected, and the previous ones stay in effect")
		return
	}
	klog.InfoS("Reloaded the index configs", "result", o.String())
	logWarnings(o.Config)
}

func logWarnings(config *indexers.Config) {
	for _, w := range config.Warnings {
		klog.InfoS("An index config has a warning", "warning", w.String())
	}
}

// followFiles reloads the index configs until ctx ends.
func (c *typeCache) followFiles(ctx context.Context) {
	if c.configWatcher == nil {
		return
	}
	if err := c.configWatcher.Run(ctx); err != nil {
		klog.ErrorS(err, "Changes of the index configs are not noticed")
	}
}

// filesNotice returns the error of the index configs, for the page.
func (c *typeCache) filesNotice() string {
	if c.configWatcher == nil || c.configWatcher.Status().Err == nil {
		return ""
	}
	return c.configWatcher.Status().String()
}
