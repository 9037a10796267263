package serve

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/bind"
	"github.com/crdcache/crdcache/indexers/reload"
)

// createConfigWatcher creates a watcher unless a config file is a pipe, which can be read only once.
func (s *cacheServer) createConfigWatcher() (err error) {
	s.configDigest.Store(new(s.Config.Digest()))
	isRegular := func(name string) bool {
		info, err := os.Stat(name)
		return err == nil && info.Mode().IsRegular()
	}
	if !s.Config.IsSet || slices.ContainsFunc(s.Config.Files, func(f string) bool { return !isRegular(f) }) {
		return nil
	}
	s.configWatcher, err = reload.New(reload.Options{
		Files: s.Config.Files, Apply: s.applyConfig, Report: s.reportConfig})
	if err == nil {
		s.Config = session.NewConfig(s.configWatcher.Config(), s.Config.Files...)
		s.configDigest.Store(new(s.Config.Digest()))
	}
	return err
}

// applyConfig applies a changed config. Meanwhile, info has no digest of a config. Therefore commands with
// the old or the new config read from the cluster.
func (s *cacheServer) applyConfig(ctx context.Context, changed *indexers.Config) error {
	digest, config := s.configDigest.Swap(new("")), session.NewConfig(changed)
	settings, err := s.settings(config)
	if err == nil {
		err = s.checkNames(ctx, config)
	}
	if err == nil {
		err = s.binding.Update(ctx, settings)
	}
	if err != nil {
		s.configDigest.Store(digest)
	}
	return err
}

// checkNames compares the names in the config with the types of the cluster, as far as these can be read.
func (s *cacheServer) checkNames(ctx context.Context, config *session.Config) error {
	names, err := config.TypeNames(config.Names())
	if err != nil {
		return err
	}
	limitedCtx, cancel := s.WithTimeout(ctx)
	defer cancel()
	types, _ := s.Resolve(limitedCtx, names)
	return config.CheckNames(types)
}

func (s *cacheServer) reportConfig(outcome reload.Outcome) {
	s.configDigest.Store(new(outcome.Config.Digest()))
	if outcome.Err == nil {
		s.notef("%s", outcome)
		return
	}
	for line := range strings.Lines(outcome.String()) {
		fmt.Fprintln(s.ErrOut, "error:", print.Printable(strings.TrimSuffix(line, "\n")))
	}
}

// settings returns the types of the arguments or the config, and the options of their caches.
func (s *cacheServer) settings(config *session.Config) (bind.Settings, error) {
	names := s.typeArgs
	if s.hasConfigTypes {
		names = config.Names()
	}
	names, err := config.TypeNames(names)
	if err != nil {
		return bind.Settings{}, err
	}
	selection, err := discovery.NewSelection(names...)
	return bind.Settings{Config: config.Config, Selection: selection, Namespace: s.onlyNamespace}, err
}

// configStatus describes the state of the config files. It returns "" without files.
func (s *cacheServer) configStatus() string {
	if s.configWatcher == nil {
		return ""
	}
	return s.configWatcher.Status().String()
}
