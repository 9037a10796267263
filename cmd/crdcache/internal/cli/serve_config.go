package cli

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/reload"
	"github.com/crdcache/crdcache/readapi/live"
)

// watchFiles makes the watcher of the config files. Pipes can be read only once and are not watched.
func (s *cacheServer) watchFiles(ctx context.Context) (err error) {
	s.digest.Store(new(s.Config.Digest()))
	isRegular := func(name string) bool {
		info, err := os.Stat(name)
		return err == nil && info.Mode().IsRegular()
	}
	if !s.Config.IsSet || slices.ContainsFunc(s.Config.Files, func(f string) bool { return !isRegular(f) }) {
		return nil
	}
	s.watcher, err = reload.New(ctx, reload.Options{
		Files: s.Config.Files, Apply: s.applyConfig, Report: s.reportConfig,
		Check: func(_ context.Context, config *indexers.Config) error {
			if !s.metrics.IsValid() {
				return nil
			}
			return config.CheckMetricScope()
		},
	})
	if err == nil {
		s.Config = session.NewConfig(s.watcher.Config(), s.Config.Files...)
		s.digest.Store(new(s.Config.Digest()))
	}
	return err
}

// applyConfig applies a changed config. Meanwhile, info names no config, so that commands with the old or the
// new one read from the cluster.
func (s *cacheServer) applyConfig(ctx context.Context, u reload.Update) error {
	s.digest.Store(new(""))
	settings, err := s.settings(session.NewConfig(u.New))
	if err == nil {
		err = s.reconciler.Update(ctx, settings)
	}
	if err != nil {
		s.digest.Store(new(u.Old.Digest()))
	}
	return err
}

func (s *cacheServer) reportConfig(o reload.Outcome) {
	s.digest.Store(new(o.Config.Digest()))
	if o.Err == nil {
		s.notef("%s", o)
		return
	}
	for line := range strings.Lines(o.String()) {
		fmt.Fprintln(s.ErrOut, "error:", print.Printable(strings.TrimSuffix(line, "\n")))
	}
}

// settings returns the types of a config and of the arguments, and their caches.
func (s *cacheServer) settings(config *session.Config) (live.Settings, error) {
	names := s.names
	if s.fromConfig {
		names = config.Names()
	}
	names, err := config.TypeNames(names)
	if err != nil {
		return live.Settings{}, err
	}
	selection, err := discovery.NewSelection(names...)
	return live.Settings{
		Selection: selection, Metrics: config.Metrics, References: config.References,
		InformerOptions: func(r discovery.Resource) (options dynamicinformer.ResourceOptions,
			indexes []*indexers.Index) {
			if s.onlyNamespace != "" && r.Scope == discovery.Namespaced {
				options.Namespaces = dynamicinformer.InNamespaces(s.onlyNamespace)
			}
			return options, config.Indexes(r)
		},
	}, err
}

// configStatus describes the state of the config files; empty without files.
func (s *cacheServer) configStatus() string {
	if s.watcher == nil {
		return ""
	}
	return s.watcher.Status().String()
}

// configNotice returns the error of the config files, for the page.
func (s *cacheServer) configNotice() string {
	if s.watcher == nil || s.watcher.Status().Err == nil {
		return ""
	}
	return s.configStatus()
}
