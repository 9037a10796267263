package readapi

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	apiselection "k8s.io/apimachinery/pkg/selection"

	"github.com/crdcache/crdcache/internal/jsonpath"
	"github.com/crdcache/crdcache/internal/naming"
)

type selection struct {
	namespace  string
	namespaced bool // the type is namespaced
	labels     *naming.LabelMatcher
	fields     fields.Selector // nil selects all
	// paths are the selectable fields in the field selector.
	paths map[string]*jsonpath.Path
	// conditions are the requirements of the field selector that the collection evaluates, without fields.
	conditions []condition
	filter     Filter         // nil selects all
	filterErr  error          // the first one of filter
	shard      *ShardSelector // nil selects all
}

// condition is a requirement on a field of a Collection with Fields.
type condition struct {
	field, value string
	matches      func(Object) bool
	negated      bool
}

func newSelection(res *resource, options *listOptions) (*selection, error) {
	s := &selection{
		namespace: res.namespace, namespaced: res.typ.Namespaced,
		labels: naming.CompileLabels(options.LabelSelector), paths: map[string]*jsonpath.Path{},
	}
	s.filter, _ = res.collection.(Filter)
	var err error
	if s.shard, err = shardSelectorOf(options.ShardSelector); err != nil {
		return nil, err
	}
	if options.FieldSelector == nil || options.FieldSelector.Empty() {
		return s, nil
	}
	var remaining []fields.Selector
	for _, r := range options.FieldSelector.Requirements() {
		isCollectionField, err := s.addCondition(res, r)
		if err != nil {
			return nil, err
		}
		if !isCollectionField {
			remaining = append(remaining, decodedRequirement(r))
		}
		switch {
		case isCollectionField:
		case r.Field == "metadata.name" || r.Field == "metadata.namespace" && res.typ.Namespaced:
		case slices.Contains(res.version.SelectableFields, "."+r.Field):
			s.paths[r.Field] = jsonpath.FromSegments(strings.Split(r.Field, ".")...)
		case !res.typ.Custom && res.typ.Namespaced && len(res.version.SelectableFields) == 0:
			return nil, apierrors.NewBadRequest(fmt.Sprintf("%q is not a known field selector: only \"metadata.name\", \"metadata.namespace\"", r.Field))
		default:
			return nil, apierrors.NewBadRequest("field label not supported: " + r.Field)
		}
	}
	if len(remaining) > 0 {
		s.fields = fields.AndSelectors(remaining...)
	}
	return s, nil
}

func decodedRequirement(r fields.Requirement) fields.Selector {
	if r.Operator == apiselection.NotEquals {
		return fields.OneTermNotEqualSelector(r.Field, r.Value)
	}
	return fields.OneTermEqualSelector(r.Field, r.Value)
}

// addCondition adds a condition and returns true if the collection has the field and the type has not.
func (s *selection) addCondition(res *resource, r fields.Requirement) (bool, error) {
	collectionFields, ok := res.collection.(Fields)
	if !ok || strings.HasPrefix(r.Field, "metadata.") ||
		slices.Contains(res.version.SelectableFields, "."+r.Field) {
		return false, nil
	}
	matches, err := collectionFields.Field(r.Field, r.Value)
	if err != nil {
		return false, apierrors.NewBadRequest(fmt.Sprintf("field %s: %v", r.Field, err))
	}
	if matches == nil {
		return false, nil
	}
	s.conditions = append(s.conditions,
		condition{r.Field, r.Value, matches, r.Operator == apiselection.NotEquals})
	return true, nil
}

// candidates returns the objects of a range that can match.
func (s *selection) candidates(snapshot Snapshot, from, to string) iter.Seq[Object] {
	indexed, ok := snapshot.(FieldIndexed)
	for _, c := range s.conditions {
		if !ok || c.negated {
			continue
		}
		if ranged, isRange := indexed.RangeField(c.field, c.value, from, to); isRange {
			return ranged
		}
	}
	return snapshot.Range(from, to)
}

func (s *selection) selectsAll() bool {
	return s.fields == nil && len(s.conditions) == 0 && s.labels.Empty() && s.shard == nil && s.filter == nil
}

// selectsAtMostOne reports whether at most one object can be selected. A kube-apiserver reads it by name.
func (s *selection) selectsAtMostOne() bool {
	if s.fields == nil {
		return false
	}
	_, hasName := s.fields.RequiresExactMatch("metadata.name")
	_, hasNamespace := s.fields.RequiresExactMatch("metadata.namespace")
	return hasName && (hasNamespace || s.namespace != "" || !s.namespaced)
}

func (s *selection) keyRange() (from, to string) {
	if s.namespace == "" {
		return "", ""
	}
	return s.namespace + "/", s.namespace + "0" // "0" follows "/"
}

func (s *selection) cost() int {
	work := workPerObject + s.labels.Len() + len(s.conditions)
	if s.fields != nil {
		work += len(s.fields.Requirements())
	}
	if s.filter != nil {
		work += workPerSlice / 4 // a query can read the whole object
	}
	return work
}

func (s *selection) matches(o Object) bool {
	if !strings.HasPrefix(o.Key(), prefixOf(s.namespace)) ||
		!s.labels.Empty() && !s.labels.Matches(o.Labels()) || !s.shard.selects(o) {
		return false
	}
	for _, c := range s.conditions {
		if c.matches(o) == c.negated {
			return false
		}
	}
	if matchesFields := s.fieldsMatch(o); !matchesFields || s.filter == nil {
		return matchesFields
	}
	isSelected, err := s.filter.Selects(o)
	if s.filterErr == nil {
		s.filterErr = err
	}
	return isSelected && err == nil
}

func (s *selection) fieldsMatch(o Object) bool {
	if s.fields == nil {
		return true
	}
	namespace, name := naming.SplitKey(o.Key())
	values := fields.Set{"metadata.name": name, "metadata.namespace": namespace}
	if len(s.paths) > 0 {
		body, err := o.JSON()
		if err != nil {
			return false
		}
		for name, path := range s.paths {
			values[name] = scalarField(body, path)
		}
	}
	return s.fields.Matches(values)
}

// scalarField returns the value of a field as a string. It is empty if the field is missing or not a scalar.
func scalarField(body []byte, path *jsonpath.Path) string {
	value, ok, err := path.FirstJSON(body)
	if !ok || err != nil {
		return ""
	}
	switch value.Kind() {
	case jsonpath.KindString, jsonpath.KindNumber, jsonpath.KindBool:
		return value.String()
	}
	return ""
}
