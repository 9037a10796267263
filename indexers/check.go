package indexers

import (
	"errors"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers/internal/check"
	"github.com/crdcache/crdcache/indexers/internal/config"
)

// Check compares all resources with the definitions of custom resources, from a cluster or from
// files: that they exist, and that their schemas have the fields that paths and conditions name. The
// error is a [*ConfigError] with everything that is wrong. What the schema leaves open, and what no
// CRD defines because it is optional or built into Kubernetes, is a warning.
func (c *Config) Check(definitions []*crd.Definition) (warnings []Diagnostic, err error) {
	return divide(check.Config(c.declared(), definitions, false))
}

// CheckCluster is [Config.Check] with all definitions that a cluster has: it says what the cluster lacks.
func (c *Config) CheckCluster(definitions []*crd.Definition) (warnings []Diagnostic, err error) {
	return divide(check.Config(c.declared(), definitions, true))
}

// CheckOptions say what a config is compared with.
type CheckOptions struct {
	// Definitions are called with the groups of the resources that could be read, which may be patterns, and
	// of what these refer to. They give the CustomResourceDefinitions to compare with.
	Definitions func(groups []string) ([]*crd.Definition, error)
	// Cluster says that those are all that a cluster has: what is not among them is not there.
	Cluster bool
}

// CheckSources is [Parse] and [Config.Check] in one: it gives everything that is wrong at once, also what the
// schemas say about the rest of a config that has errors. Without errors there is a config, with the warnings
// of both. The error is a [*ConfigError], with that of Definitions if there was one: nothing has been
// compared then.
func CheckSources(options CheckOptions, sources ...Source) (*Config, error) {
	resources, findings := load(sources)
	var groups []string
	for _, r := range resources {
		groups = append(groups, r.Match.Group)
		for _, t := range check.Targets(r) {
			groups = append(groups, t.Group)
		}
	}
	definitions, err := options.Definitions(groups)
	if err != nil {
		if _, wrong := divide(findings); wrong != nil {
			return nil, errors.Join(wrong, err)
		}
		return nil, err
	}
	said := map[config.Finding]bool{} // by file and place: one cause may have two consequences
	at := func(f config.Finding) config.Finding {
		return config.Finding{File: f.File, Line: f.Line, Column: f.Column}
	}
	for _, f := range findings {
		said[at(f)] = said[at(f)] || !f.IsWarning()
	}
	for _, f := range check.Config(resources, definitions, options.Cluster) {
		if !said[at(f)] {
			findings = append(findings, f)
		}
	}
	config.Sort(findings)
	return newConfig(resources, findings)
}

func (c *Config) declared() []*config.Resource {
	all := make([]*config.Resource, len(c.Resources))
	for i, r := range c.Resources {
		all[i] = r.declared
	}
	return all
}

// CheckCondition compares a condition or a path of a query with the schema that a version of a type has, as
// [Config.Check] does for those of a config: fields that do not exist, and comparisons that no value fulfils.
// A query may be meant for objects that are older than the schema, so that all of it is advice, whatever the
// codes. Columns are those of the text. A text that is neither a condition nor a path, and what has no
// schema, gives nothing.
func CheckCondition(text string, d *crd.Definition, version string) []Diagnostic {
	return diagnostics(check.Condition(text, d, version))
}

// CheckColumn compares a path of a query whose values are sorted by, grouped or computed with, as
// CheckCondition does a condition: fields that do not exist, and paths that lead to a list or a map, which
// are no values.
func CheckColumn(path string, d *crd.Definition, version string) []Diagnostic {
	return diagnostics(check.Column(path, d, version))
}

// ColumnType returns the type that the schema of a version gives the values at a path: "quantity",
// "duration", or "" if it gives neither. A field that takes integers and text (x-kubernetes-int-or-string)
// holds quantities.
func ColumnType(path string, d *crd.Definition, version string) string {
	return check.ColumnType(path, d, version)
}

func diagnostics(found []config.Finding) (all []Diagnostic) {
	for _, f := range found {
		all = append(all, newDiagnostic(f))
	}
	return all
}
