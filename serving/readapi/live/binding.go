package live

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/bind"
)

// Bind returns a binding of the server's factory whose targets the server serves. settings.Selection is
// required, and Options.Accept belongs to the server. Start the binding with Run after the factory.
//
// If only indexes of a type change, watches continue, unless they use indexes and one has changed: then
// other objects match, so they end with an error 410. If a new informer with other fields takes over, all
// watches of the type end with an error 410.
func (s *Server) Bind(settings bind.Settings, options bind.Options) (*bind.Binding, error) {
	if settings.Selection == nil {
		return nil, errors.New("live: Settings.Selection is required")
	}
	options.Accept = s.accept
	onChange := options.OnChange
	options.OnChange = func(old, changed *bind.Target) {
		s.replaceTarget(old, changed)
		if onChange != nil {
			onChange(old, changed)
		}
	}
	return bind.NewWithSettings(s.options.Factory, settings, options)
}

// Run runs a binding of Bind until ctx ends.
func (s *Server) Run(ctx context.Context, binding *bind.Binding, tracker *discovery.Tracker) {
	// Targets are compared with the definitions. Without the right to read them, they stay unknown.
	_ = s.definitions.WaitForSync(ctx)
	binding.Run(ctx, tracker)
}

// accept returns an error if a target cannot be served.
func (s *Server) accept(t *bind.Target) error {
	if err := CheckResource(t.Resource); err != nil {
		return err
	}
	if err := t.Informer.KeepHistory(s.options.History); err != nil {
		return err
	}
	stored, ok := s.definitions.Informer().Snapshot().Stored(t.GVR.GroupResource().String())
	if !ok {
		return nil // a type without a definition, or an unknown one: see withoutDropped
	}
	if typ, err := definedType(stored); err == nil && typ.Version(t.GVR.Version) != nil {
		findings := t.Resource.CheckSelectable(t.Type.String(), typ.Version(t.GVR.Version).SelectableFields)
		if len(findings) > 0 {
			return &indexers.ConfigError{Diagnostics: findings}
		}
	}
	return nil
}

// replaceTarget serves a changed target instead of an old one. Both can be nil.
func (s *Server) replaceTarget(old, changed *bind.Target) {
	switch {
	case changed == nil:
		s.RemoveType(old.GVR.GroupResource())
	case old == nil || old.Informer != changed.Informer:
		s.addView(changed.View())
	default:
		s.cacheOf(old.GVR.GroupResource()).setView(changed.View())
	}
}

// CheckResource returns an error if a resource of a config is valid for informers, but a server cannot serve
// its objects.
func CheckResource(r *indexers.Resource) error {
	var errs []error
	if err := CheckStorage(r.Storage.Mode); err != nil {
		errs = append(errs, fmt.Errorf("storage.mode: %w", err))
	}
	if n := r.Namespaces; !n.All() &&
		(len(n.Include) != 1 || len(n.Exclude) > 0 || strings.Contains(n.Include[0], "*")) {
		errs = append(errs, errors.New("namespaces: the objects of one namespace or of all can be served: name one namespace in include"))
	}
	if r.Selectors != (indexers.Selectors{}) {
		errs = append(errs, errors.New("selectors: all objects of a type are served: remove them"))
	}
	return errors.Join(errs...)
}

// CheckStorage returns an error if objects cannot be served from a storage mode. "" is the default.
func CheckStorage(text string) error {
	mode := dynamicinformer.StoragePacked
	if text != "" {
		if err := mode.UnmarshalText([]byte(text)); err != nil {
			return err
		}
	}
	switch mode {
	case dynamicinformer.StorageAdaptive, dynamicinformer.StorageCompressed, dynamicinformer.StoragePacked:
		return nil
	}
	return fmt.Errorf("cannot serve objects with mode %q: use adaptive, compressed or packed", text)
}
