package server

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/bind"
	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/serving/readapi/live"
)

// secretsType is cached only if the config permits it.
var secretsType = discovery.Resource{GVR: schema.GroupVersionResource{Version: "v1", Resource: "secrets"},
	GVK: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, Singular: "secret"}

// selection selects the cached types and their indexes. It is immutable; see typeCache.applyIndexes.
type selection struct {
	// typeNames and indexes come from the config file and its index configs.
	typeNames    []string
	indexes      *indexers.Config
	cacheSecrets bool
	storage      dynamicinformer.Storage
	buildLimits  indexers.BuildLimits
}

func (s *selection) withIndexes(indexes *indexers.Config) *selection {
	next := *s
	next.indexes = indexes
	return &next
}

// names returns the names and patterns of the selected types.
func (s *selection) names() []string {
	return slices.Concat(s.typeNames,
		naming.Texts(s.indexes.Resources, func(r *indexers.Resource) string { return r.Match.TypeName() }))
}

// selects reports whether a name selects a type. A name without a group selects types of any group.
func selects(raw string, r discovery.Resource) bool {
	name, err := discovery.ParseName(raw)
	return err == nil && slices.ContainsFunc(name.Interpretations, func(i discovery.Interpretation) bool {
		names := []string{r.GVR.Resource, r.Singular, r.GVK.Kind}
		return i.Matches(r.GVR.Group, []string{r.GVR.Version},
			slices.Concat(names, r.ShortNames, r.Categories))
	})
}

// settings returns the settings of the binding. The error joins the problems of the files.
func (s *selection) settings() (settings bind.Settings, err error) {
	problems := naming.Map(s.typeNames, s.checkSecrets)
	for _, r := range s.indexes.Resources {
		if err := s.checkResource(r); err != nil {
			problems = append(problems, fmt.Errorf("resource %q of an index config: %w", r.Name, err))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return settings, err
	}
	settings = bind.Settings{Config: s.indexes, Exclude: s.excludeErr, BuildLimits: s.buildLimits}
	settings.Selection, err = discovery.NewSelection(s.names()...)
	return settings, err
}

// checkResource returns the errors of a resource that is valid for the library but cannot be served.
func (s *selection) checkResource(r *indexers.Resource) error {
	problems := []error{validateIndexNames(r), s.checkSecrets(r.Match.TypeName())}
	if _, err := discovery.ParseName(r.Match.TypeName()); err != nil {
		problems = append(problems, err)
	}
	options, err := bind.Options{Compression: compression}.ResourceOptions(r)
	return errors.Join(append(problems, live.CheckResource(r), err, options.Validate())...)
}

var errSecrets = errors.New("secrets are cached only if the config sets secrets: true")

// checkSecrets returns an error if a name selects Secrets although the config does not permit it. Patterns
// leave them out.
func (s *selection) checkSecrets(name string) error {
	if !s.cacheSecrets && !strings.Contains(name, "*") && selects(name, secretsType) {
		return fmt.Errorf("%s: %w", name, errSecrets)
	}
	return nil
}

func (s *selection) excludeErr(r discovery.Resource) error {
	if r.GVR.GroupResource() == secretsType.GVR.GroupResource() && !s.cacheSecrets {
		return errSecrets
	}
	if !slices.ContainsFunc(s.names(), func(name string) bool { return selects(name, r) }) {
		return fmt.Errorf("no config selects %s: write its plural name in match.resource", r)
	}
	return nil
}

// problemOf returns why a type that the config selects is not cached, or nil.
func (c *typeCache) problemOf(gr schema.GroupResource) error {
	problems := c.binding.Problems()
	for _, name := range slices.Sorted(maps.Keys(problems)) {
		if parsed, err := discovery.ParseName(name); err == nil && slices.ContainsFunc(parsed.Interpretations,
			func(i discovery.Interpretation) bool {
				return i.Matches(gr.Group, []string{i.Version}, []string{gr.Resource})
			}) {
			return problems[name]
		}
	}
	return nil
}

// describeIndexes returns the sizes of the indexes of a type. A config that exceeds a limit is rejected, but
// indexes also grow.
func (s *selection) describeIndexes(cached *bind.Target) (text string, withinLimits bool) {
	var sizes []string
	total := int64(0)
	withinLimits = true
	for _, index := range cached.Informer.Stats().Indexes {
		if index.Name == toolscache.NamespaceIndex {
			continue
		}
		name, _, _ := strings.Cut(index.Name, "~") // an index that replaced another one
		sizes = append(sizes, fmt.Sprintf("%s %d bytes", name, index.Bytes))
		total += index.Bytes
		withinLimits = withinLimits && (s.buildLimits.IndexBytes == 0 ||
			index.Bytes <= s.buildLimits.IndexBytes)
	}
	if len(sizes) == 0 {
		return "", true
	}
	text = "; indexes: " + strings.Join(sizes, ", ")
	if withinLimits = withinLimits && (s.buildLimits.TypeBytes == 0 ||
		total <= s.buildLimits.TypeBytes); !withinLimits {
		text += "; above limits.indexBytes or limits.typeIndexBytes of the config"
	}
	return text, withinLimits
}
