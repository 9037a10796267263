package filesource

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/internal/manifest"
	"github.com/crdcache/crdcache/serving/readapi"
)

// SelectVersions sets the names of the types that are read. A name with a version selects the objects that
// are written in it. Otherwise all objects are read, each in its own version. A snapshot has one version of
// each object.
func (s *Source) SelectVersions(typeNames ...string) {
	var names []discovery.Name
	for _, text := range typeNames {
		if name, err := discovery.ParseName(text); err == nil { // the resolver reports the error
			names = append(names, name)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.names = names
}

// readsAll reports whether requests for a version of a type read the objects in all versions.
func (s *Source) readsAll(t *readapi.Type, version string) bool {
	return t.Versions[0].Name == version && !s.isVersionNamed(t, version)
}

// isVersionNamed reports whether a version of a type is named, and the type is not named without one.
func (s *Source) isVersionNamed(t *readapi.Type, version string) (isNamed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := append([]string{t.Names.Plural, t.Names.Singular, t.Names.Kind}, t.Names.ShortNames...)
	for _, name := range s.mu.names {
		i := slices.IndexFunc(name.Interpretations, func(i discovery.Interpretation) bool {
			return i.Matches(t.Group, []string{version}, names)
		})
		if i >= 0 && name.Interpretations[i].Version == "" {
			return false
		}
		isNamed = isNamed || i >= 0
	}
	return isNamed
}

// reportMixedVersions warns about a type whose objects are written in several versions.
func (l *loader) reportMixedVersions(gr schema.GroupResource, s *Source) {
	k, ok := l.kindForResource(gr)
	if !ok || len(k.typ.Versions) < 2 || l.mixedTypes[gr] {
		return
	}
	var named, written []string
	counts := l.storage.Versions(gr)
	for _, v := range k.typ.Versions {
		if s.isVersionNamed(&k.typ, v.Name) {
			named = append(named, v.Name)
		} else if counts[v.Name] > 0 {
			written = append(written, fmt.Sprintf("%d in %s", counts[v.Name], v.Name))
		}
	}
	namedCount := l.storage.CountInVersions(gr, named...)
	rest := l.storage.Len(gr) - namedCount
	var err error
	switch {
	case len(named) == 0 && len(written) > 1:
		err = fmt.Errorf("the objects of %s are written in several versions (%s): each is read in its own, because no "+
			"server converts files", gr, strings.Join(written, ", "))
	case len(named) > 0 && rest > 0 && (namedCount > 0 || k.typ.Converted):
		err = fmt.Errorf("not all objects of %s are read as %s (%s), because no server converts files: name no version to "+
			"read all", gr, strings.Join(named, " or "), strings.Join(written, ", "))
	default:
		return
	}
	l.mixedTypes[gr] = true
	l.report(&manifest.Problem{File: s.pathNames(), Warning: true, Err: err})
}

// summarize reports the counts since the last call.
func (l *loader) summarize() {
	l.copies.report(l.report)
	l.reader.Summarize()
}
