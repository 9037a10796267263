package indexers

import (
	"io"
	"os"

	"github.com/crdcache/crdcache/indexers/internal/config"
)

// Source is a file that has been read.
type Source struct {
	// Name is what findings call the file.
	Name string
	Data []byte
	// Err says why the file could not be read, which is a finding of [Parse] then.
	Err error
}

// Load reads and parses files as one config; see [Parse]. Files that cannot be read are findings too.
func Load(paths ...string) (*Config, error) { return Parse(ReadSources(paths...)...) }

// ReadSources reads files as [ReadSource] does. Those that cannot be read say so in Err.
func ReadSources(paths ...string) []Source {
	sources := make([]Source, len(paths))
	for i, path := range paths {
		source, err := ReadSource(path)
		source.Err = err
		sources[i] = source
	}
	return sources
}

// ReadSource reads a file. Of one that is too long for a config it reads little more than what makes [Parse]
// refuse it, so that a file without an end does no harm.
func ReadSource(path string) (Source, error) {
	source := Source{Name: path}
	f, err := os.Open(path)
	if err != nil {
		return source, err
	}
	defer f.Close()
	source.Data, err = io.ReadAll(io.LimitReader(f, config.MaxSourceBytes+1))
	return source, err
}

// Parse reads sources as one config. A source holds YAML or JSON: one IndexConfig or more, as
// separate documents. Names of resources are unique across all of them. The error is a
// [*ConfigError] with everything that is wrong; there is no config then.
func Parse(sources ...Source) (*Config, error) {
	resources, findings := load(sources)
	return newConfig(resources, findings)
}

// load gives what sources declare, as far as it can be read, and what was found.
func load(sources []Source) ([]*config.Resource, []config.Finding) {
	l := config.NewLoader()
	for _, s := range sources {
		if s.Err != nil {
			l.Unreadable(s.Name, s.Err)
			continue
		}
		l.Add(s.Name, s.Data)
	}
	return l.Finish()
}

// newConfig makes a config of what was loaded, unless there are errors.
func newConfig(resources []*config.Resource, findings []config.Finding) (*Config, error) {
	warnings, err := divide(findings)
	if err != nil {
		return nil, err
	}
	c := &Config{Warnings: warnings}
	for _, r := range resources {
		c.Resources = append(c.Resources, newResource(r))
	}
	return c, nil
}

func newResource(d *config.Resource) *Resource {
	r := &Resource{
		Config: d.Config, Name: d.Name, Match: Match(d.Match), Optional: d.Optional,
		Storage: Storage(d.Storage), Prune: Prune(d.Prune), Namespaces: Namespaces(d.Namespaces),
		Selectors: Selectors(d.Selectors),
		declared:  d,
	}
	for _, index := range d.Indexes {
		r.Indexes = append(r.Indexes, newIndex(index))
	}
	for _, reference := range d.References {
		r.References = append(r.References, newReference(reference))
	}
	return r
}

// divide tells warnings and errors apart.
func divide(all []config.Finding) (warnings []Diagnostic, err error) {
	var errs []Diagnostic
	for _, f := range all {
		if f.IsWarning() {
			warnings = append(warnings, newDiagnostic(f))
		} else {
			errs = append(errs, newDiagnostic(f))
		}
	}
	if len(errs) > 0 {
		return warnings, &ConfigError{Diagnostics: errs, Warnings: warnings}
	}
	return warnings, nil
}

// Finding makes a diagnostic about what the resource matches, at its place in the file: for programs that
// look the resource up and have something to say about that.
func (r *Resource) Finding(code Code, message, hint string) Diagnostic {
	return newDiagnostic(r.declared.File.Finding(config.Code(code), r.declared.At.Name, message, hint))
}
