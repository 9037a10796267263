package snapshots

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/internal/snapshot"
)

// redaction defines the fields to omit from the objects of a type.
type redaction struct {
	// Type is a type name as users write it.
	Type string `json:"type"`
	// Paths are fields, such as '.spec.token' or '.spec.users[*].password'.
	Paths []string `json:"paths"`
}

var secretsRedaction = redaction{Type: "secrets.v1.", Paths: []string{".data", ".stringData"}}

// parseRedactions parses a config with "redact:" and a list of types and paths.
func parseRedactions(text []byte) ([]redaction, error) {
	var config struct {
		Redact []redaction `json:"redact"`
	}
	if err := yaml.UnmarshalStrict(text, &config); err != nil {
		return nil, err
	}
	if len(config.Redact) == 0 {
		return nil, errors.New("the list 'redact:' of types and paths is missing")
	}
	for i, r := range config.Redact {
		if r.Type == "" || len(r.Paths) == 0 {
			return nil, fmt.Errorf("redact[%d] needs a type and paths", i)
		}
		if err := r.prune().Validate(); err != nil {
			return nil, fmt.Errorf("redact[%d]: %w", i, err)
		}
	}
	return config.Redact, nil
}

// prune removes the paths, and the annotation with kubectl's copy of the object.
func (r redaction) prune() dynamicinformer.Prune {
	return dynamicinformer.Prune{Paths: r.paths(),
		Presets: []dynamicinformer.PrunePreset{dynamicinformer.PruneLastApplied}}
}

// managedFieldsPath is omitted, because it contains the values of set items and list keys.
const managedFieldsPath = ".metadata.managedFields"

// paths returns all omitted paths. Secrets have no lists.
func (r redaction) paths() []string {
	if r.Type == secretsRedaction.Type {
		return r.Paths
	}
	return append(slices.Clone(r.Paths), managedFieldsPath)
}

type redactor struct {
	redactions []snapshot.Redaction
	rules      map[schema.GroupResource][]redaction
}

// add redacts the objects of types. Events are redacted in both of their API groups.
func (r *redactor) add(rule redaction, types ...schema.GroupResource) {
	if r.rules == nil {
		r.rules = map[schema.GroupResource][]redaction{}
	}
	rule, types = withBothEventTypes(rule, types)
	record := snapshot.Redaction{Type: rule.Type, Paths: rule.paths()}
	for _, gr := range types {
		r.rules[gr] = append(r.rules[gr], rule)
		record.Resources = append(record.Resources, gr.String())
	}
	if len(types) > 0 {
		r.redactions = append(r.redactions, record)
	}
}

func (r *redactor) redact(resource schema.GroupResource, object []byte) ([]byte, error) {
	rules := r.rules[resource]
	if len(rules) == 0 {
		return object, nil
	}
	var u unstructured.Unstructured
	if err := json.Unmarshal(object, &u.Object); err != nil {
		return nil, err
	}
	for _, rule := range rules {
		if err := rule.prune().Apply(&u); err != nil {
			return nil, err
		}
	}
	return json.Marshal(u.Object)
}
