package indexers

import (
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

func (c *Config) declared() []*config.Resource {
	all := make([]*config.Resource, len(c.Resources))
	for i, r := range c.Resources {
		all[i] = r.declared
	}
	return all
}

// CheckCondition compares a condition or a path of a query with the schema that a version of a type has, as
// [Config.Check] does for those of a config: fields that do not exist, and comparisons that no value fulfils. A query
// may be meant for objects that are older than the schema, so that all of it is advice, whatever the codes. Columns are
// those of the text. A text that is neither a condition nor a path, and what has no schema, gives nothing.
func CheckCondition(text string, d *crd.Definition, version string) []Diagnostic {
	var all []Diagnostic
	for _, f := range check.Condition(text, d, version) {
		all = append(all, newDiagnostic(f))
	}
	return all
}
