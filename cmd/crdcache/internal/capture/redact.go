package capture

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/snapshot"
)

// Redaction says what is left out of the objects of a type.
type Redaction struct {
	// Type is a name as people type it.
	Type string `json:"type"`
	// Paths are fields, as in '.spec.token' or '.spec.users[*].password'.
	Paths []string `json:"paths"`
}

// Secrets leaves out what Secrets keep.
var Secrets = Redaction{Type: "secrets.v1.", Paths: []string{".data", ".stringData"}}

// ParseRedactions reads a config: "redact:" with a list of types and paths.
func ParseRedactions(text []byte) ([]Redaction, error) {
	var config struct {
		Redact []Redaction `json:"redact"`
	}
	if err := yaml.UnmarshalStrict(text, &config); err != nil {
		return nil, err
	}
	if len(config.Redact) == 0 {
		return nil, errors.New("it has no list 'redact:' of types and paths")
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

// prune leaves out the paths, and the annotation in which kubectl keeps a copy of the whole object.
func (r Redaction) prune() dynamicinformer.Prune {
	return dynamicinformer.Prune{Paths: r.paths(),
		Presets: []dynamicinformer.PrunePreset{dynamicinformer.PruneLastApplied}}
}

// managedFields names the items of lists and sets by their values, and would tell what is left out of them.
const managedFields = ".metadata.managedFields"

// paths are all that are left out. Secrets have no lists.
func (r Redaction) paths() []string {
	if r.Type == Secrets.Type {
		return r.Paths
	}
	return append(slices.Clone(r.Paths), managedFields)
}

// Redactor leaves parts out of objects.
type Redactor struct {
	all   []snapshot.Redaction
	types map[schema.GroupResource][]Redaction
}

// Add has objects of types redacted, and events in both of the forms in which they are served.
func (r *Redactor) Add(what Redaction, of ...schema.GroupResource) {
	if r.types == nil {
		r.types = map[schema.GroupResource][]Redaction{}
	}
	what, of = twins(what, of)
	done := snapshot.Redaction{Type: what.Type, Paths: what.paths()}
	for _, gr := range of {
		r.types[gr] = append(r.types[gr], what)
		done.Resources = append(done.Resources, gr.String())
	}
	if len(of) > 0 {
		r.all = append(r.all, done)
	}
}

// shows reports whether what the server prints of a type may be kept: a column may show what is left out.
// Those of Secrets show how many values there are.
func (r *Redactor) shows(of schema.GroupResource) bool {
	for _, one := range r.types[of] {
		if one.Type != Secrets.Type {
			return false
		}
	}
	return true
}

// redact leaves parts out of an object.
func (r *Redactor) redact(of schema.GroupResource, object []byte) ([]byte, error) {
	rules := r.types[of]
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
