package server

import (
	"context"
	"slices"
	"time"

	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/reload"
)

// maxIndexTime and maxTypeIndexTime are the mean times for an object that one index, or all new indexes of a
// type, may take. Each event takes as long.
const (
	maxIndexTime     = time.Millisecond
	maxTypeIndexTime = 5 * time.Millisecond
)

// loadSelection sets the first selection and creates the watcher of the index configs.
func (c *typeCache) loadSelection(config *Config) (err error) {
	initial := &selection{typeNames: slices.Clone(config.Types), indexes: &indexers.Config{},
		cacheSecrets: config.Secrets, storage: config.storage(),
		buildLimits: indexers.BuildLimits{IndexBytes: config.Limits.IndexBytes.Value(),
			TypeBytes: config.Limits.TypeIndexBytes.Value(),
			IndexTime: maxIndexTime, TypeTime: maxTypeIndexTime}}
	c.selection.Store(initial)
	if len(config.IndexConfigs) == 0 {
		return nil
	}
	c.indexConfigWatcher, err = reload.New(reload.Options{
		Files: config.IndexConfigs,
		Apply: c.applyIndexes, Report: c.reportReload,
	})
	if err != nil {
		return err
	}
	c.logWarnings(c.indexConfigWatcher.Config())
	c.selection.Store(initial.withIndexes(c.indexConfigWatcher.Config()))
	_, err = c.selection.Load().settings()
	return err
}

// applyIndexes replaces the index configs, and blocks until the new ones are in effect. An error changes
// nothing. Only one call runs at a time.
func (c *typeCache) applyIndexes(ctx context.Context, indexes *indexers.Config) error {
	next := c.selection.Load().withIndexes(indexes)
	settings, err := next.settings()
	if err == nil {
		err = c.binding.Update(ctx, settings)
	}
	if err == nil {
		c.selection.Store(next)
	}
	return err
}

func (c *typeCache) reportReload(outcome reload.Outcome) {
	if outcome.Err != nil {
		c.logger.Error(outcome.Err, "Index configs were rejected, and the previous ones stay in effect")
		return
	}
	c.logger.Info("Reloaded the index configs", "result", outcome.String())
	c.logWarnings(outcome.Config)
}

func (c *typeCache) logWarnings(config *indexers.Config) {
	for _, w := range config.Warnings {
		c.logger.Info("An index config has a warning", "warning", w.String())
	}
}

func (c *typeCache) runConfigWatcher(ctx context.Context) {
	if c.indexConfigWatcher == nil {
		return
	} else if err := c.indexConfigWatcher.Run(ctx); err != nil {
		c.logger.Error(err, "Changes of the index configs are not noticed")
	}
}

// configFileNotice returns a text about rejected index configs, or "".
func (c *typeCache) configFileNotice() string {
	if c.indexConfigWatcher == nil || c.indexConfigWatcher.Status().Err == nil {
		return ""
	}
	return c.indexConfigWatcher.Status().String()
}
