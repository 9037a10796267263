package filesource

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/serving/readapi"
)

// SelectVersions sets the names of the types that are read. A name with a version selects the objects that
// are written in it. Otherwise all objects are read, each in its own version. A snapshot has one version of
// each object. convert allows to read objects of another version if none is written in the requested one.
func (s *Source) SelectVersions(convert bool, typeNames ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.names = parseNames(typeNames)
	s.unconverted.Store(!convert)
}

func parseNames(texts []string) (names []discovery.Name) {
	for _, text := range texts {
		if name, err := discovery.ParseName(text); err == nil { // the resolver reports the error
			names = append(names, name)
		}
	}
	return names
}

// omits reports whether objects of a kind are not kept, because Options.Types names only other types. Groups
// without a dot have no CustomResourceDefinitions, so the names of their types are known.
func (l *loader) omits(k *kind) bool {
	if len(l.names) == 0 || k.inferred || strings.Contains(k.Group, ".") {
		return false
	}
	gr := k.typ.GroupResource()
	isOmitted, isKnown := l.omitted[gr]
	if !isKnown {
		t := k.typ.Names
		names := slices.Concat([]string{t.Plural, t.Singular, t.Kind}, t.ShortNames, t.Categories)
		isOmitted = !slices.ContainsFunc(l.names, func(name discovery.Name) bool {
			return slices.ContainsFunc(name.Interpretations, func(i discovery.Interpretation) bool {
				i.Version = ""
				return i.Matches(k.Group, nil, names)
			})
		})
		l.omitted[gr] = isOmitted
	}
	return isOmitted
}

// selectObjects selects the objects for requests for a version. If none is written in it, and the versions
// differ only in their names, all are selected, and converted like by a kube-apiserver.
func (s *Source) selectObjects(t *readapi.Type, version string, hasObjects bool) (all, convert bool) {
	if !hasObjects && !t.NeedsConversion {
		return true, !s.unconverted.Load()
	}
	return t.Versions[0].Name == version && !s.isVersionNamed(t, version), false
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

// useWarning returns a warning about a type whose objects are written in several versions, or are in no file,
// or nil. isNamed reports whether a version is requested.
func (s *Source) useWarning(gr schema.GroupResource, isNamed func(*readapi.Type, string) bool) (err error) {
	c := s.backend.Collection(gr)
	if c == nil {
		return nil
	}
	typ := c.Type()
	var named, written []string
	copies := 0 // objects that are written in another version, too
	for _, v := range typ.Versions {
		_, inVersion := s.backend.Versions(gr, v.Name)
		copies += inVersion
		if isNamed(&typ, v.Name) {
			named = append(named, v.Name)
		}
	}
	counts, namedCount := s.backend.Versions(gr, named...)
	rest := -namedCount
	for _, v := range typ.Versions {
		rest += counts[v.Name]
		if counts[v.Name] > 0 && !slices.Contains(named, v.Name) {
			written = append(written, fmt.Sprintf("%d in %s", counts[v.Name], v.Name))
		}
	}
	copies -= rest + namedCount
	switch {
	case s.snapshot == nil && len(s.reading.loader.shown[typ.GroupKind()]) == 0:
		err = fmt.Errorf("the files define %s, and have neither an object nor a list of them", gr)
	case s.unconverted.Load() && len(named) == 0 && copies > 0:
		err = fmt.Errorf("%d copies of %s in other versions are not saved: name a version to save them in another file", copies, gr)
	case len(named) == 0 && len(written) > 1:
		err = fmt.Errorf("the objects of %s are written in several versions (%s): each is read in its own, because no "+
			"server converts files", gr, strings.Join(written, ", "))
	case len(named) > 0 && rest > 0 && (namedCount > 0 || typ.NeedsConversion):
		err = fmt.Errorf("not all objects of %s are read as %s (%s), because no server converts files: name no version to "+
			"read all", gr, strings.Join(named, " or "), strings.Join(written, ", "))
	}
	return err
}

// Partial returns why a snapshot lacks objects or fields of a type. It is empty if it does not.
func (s *Source) Partial(gr schema.GroupResource) string {
	if s == nil || s.snapshot == nil || s.snapshot.Objects(gr) == nil {
		return ""
	}
	return s.snapshot.Objects(gr).Type().Partial
}

// summarize reports the counts since the last call.
func (l *loader) summarize() {
	l.copies.report(l.report, "copies of objects are not used, because others are newer, or are read later")
	l.namespaces.report(l.report, "cluster-scoped objects have a namespace")
	l.reader.Summarize()
}
