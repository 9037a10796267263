package indexers

import (
	"errors"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers/internal/config"
)

// Check compares all resources with CustomResourceDefinitions from a cluster or from files: they must exist,
// and their schemas must have the fields of all paths and conditions. The error is a [*ConfigError] with all
// findings. Fields that a schema leaves open, and missing types that are optional or built into Kubernetes,
// are warnings.
func (c *Config) Check(definitions []*crd.Definition) (warnings []Diagnostic, err error) {
	return splitFindings(config.Check(c.declared(), definitions, false))
}

// CheckOptions control [CheckSources].
type CheckOptions struct {
	// Definitions returns the CustomResourceDefinitions to compare with. It is called with the groups of all
	// resources that could be parsed, and of their reference targets; a group can be a pattern.
	Definitions func(groups []string) ([]*crd.Definition, error)
	// Cluster means that Definitions returns all definitions of a cluster.
	Cluster bool
}

// CheckSources combines [Parse] and [Config.Check] and reports all findings together, including findings of
// Check about the valid resources of an invalid config. The returned config has the warnings of both. The
// error is a [*ConfigError], joined with the error of Definitions, in which case nothing was compared.
func CheckSources(options CheckOptions, sources ...Source) (*Config, error) {
	resources, findings := load(sources)
	var groups []string
	for _, r := range resources {
		groups = append(groups, r.Match.Group)
		for _, t := range config.Targets(r) {
			groups = append(groups, t.Group)
		}
	}
	definitions, err := options.Definitions(groups)
	if err != nil {
		if _, configErr := splitFindings(findings); configErr != nil {
			return nil, errors.Join(configErr, err)
		}
		return nil, err
	}
	reported := map[config.Finding]bool{} // by position: report only one finding for one cause
	at := func(f config.Finding) config.Finding {
		return config.Finding{File: f.File, Line: f.Line, Column: f.Column}
	}
	for _, f := range findings {
		reported[at(f)] = reported[at(f)] || !f.IsWarning()
	}
	for _, f := range config.Check(resources, definitions, options.Cluster) {
		if !reported[at(f)] {
			findings = append(findings, f)
		}
	}
	config.Sort(findings)
	return newConfig(resources, findings)
}

func (c *Config) declared() []*config.Resource {
	resources := make([]*config.Resource, len(c.Resources))
	for i, r := range c.Resources {
		resources[i] = r.declared
	}
	return resources
}

// CheckCondition compares a condition or a path of a query with the schema of a version, like [Config.Check]:
// unknown fields, and comparisons that no value satisfies. All findings are advice, because objects can be
// older than the schema. Columns refer to text. The result is empty without a schema, and for a text that is
// neither a condition nor a path.
func CheckCondition(text string, d *crd.Definition, version string) []Diagnostic {
	return diagnostics(config.CheckCondition(text, d, version))
}

// CheckColumn checks a path that a query sorts by, groups by or computes with against a version's schema. It
// reports unknown fields, and paths that end at a list or map. See [CheckCondition].
func CheckColumn(path string, d *crd.Definition, version string) []Diagnostic {
	return diagnostics(config.CheckColumn(path, d, version))
}

// ColumnType returns the type that the schema of a version gives to the values at a path: "quantity",
// "duration", or "" for others. A field of integers or text (x-kubernetes-int-or-string) holds quantities.
func ColumnType(path string, d *crd.Definition, version string) string {
	return config.ColumnType(path, d, version)
}

func diagnostics(found []config.Finding) (converted []Diagnostic) {
	for _, f := range found {
		converted = append(converted, newDiagnostic(f))
	}
	return converted
}
