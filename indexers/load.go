package indexers

import (
	"io"
	"os"

	"github.com/crdcache/crdcache/indexers/internal/config"
)

// Source is the content of a config file.
type Source struct {
	// Name is the file name in findings.
	Name string
	Data []byte
	// Err is the error of reading the file; [Parse] reports it as a finding.
	Err error
}

// Load reads and parses files as one config; see [Parse]. An unreadable file is a finding, too.
func Load(paths ...string) (*Config, error) { return Parse(ReadSources(paths...)...) }

// ReadSources calls [ReadSource] for each path and stores the errors in Err.
func ReadSources(paths ...string) []Source {
	sources := make([]Source, len(paths))
	for i, path := range paths {
		source, err := ReadSource(path)
		source.Err = err
		sources[i] = source
	}
	return sources
}

// ReadSource reads a file. It stops shortly after the maximum size of a config, which [Parse] rejects, so
// that a file without end does no harm.
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

// Parse parses sources as one config. A source is YAML or JSON with one or more IndexConfig documents. Names
// of resources are unique across all of them. The error is a [*ConfigError] with all errors; the config is
// nil then.
func Parse(sources ...Source) (*Config, error) {
	resources, findings := load(sources)
	return newConfig(resources, findings)
}

// load returns the resources that could be parsed and all findings.
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

// newConfig converts resources to a config unless there are errors.
func newConfig(resources []*config.Resource, findings []config.Finding) (*Config, error) {
	warnings, err := splitFindings(findings)
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
		Storage: Storage(d.Storage), Prune: newPrune(d.Prune), Keep: newKeep(d.Keep.Paths),
		Namespaces: Namespaces(d.Namespaces), Selectors: Selectors(d.Selectors),
		declared: d,
	}
	for _, index := range d.Indexes {
		r.Indexes = append(r.Indexes, newIndex(index))
	}
	for _, reference := range d.References {
		r.References = append(r.References, newReference(reference))
	}
	return r
}

func splitFindings(findings []config.Finding) (warnings []Diagnostic, err error) {
	var errs []Diagnostic
	for _, f := range findings {
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

// Finding makes a diagnostic at the position of the resource's match, for programs that look up resources.
func (r *Resource) Finding(code Code, message, hint string) Diagnostic {
	return newDiagnostic(r.declared.File.Finding(config.Code(code), r.declared.MatchPositions.Name,
		message, hint))
}
