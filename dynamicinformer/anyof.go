package dynamicinformer

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Selector is an alternative of ResourceOptions.AnyOf. It selects the objects that both of its selectors
// select. A nil selector selects everything.
type Selector struct {
	Label labels.Selector
	Field fields.Selector
}

func (s Selector) options() ResourceOptions {
	return ResourceOptions{LabelSelector: s.Label, FieldSelector: s.Field}
}

func (s Selector) text() string {
	key := s.options().key()
	if key.fields == "" {
		return key.labels
	}
	return strings.TrimPrefix(key.labels+" ", " ") + "with fields " + key.fields
}

// alternatives is the value of ResourceOptions.AnyOf. Nil selects everything.
type alternatives []Selector

// possible returns the alternatives that can match.
func (all alternatives) possible() alternatives {
	return slices.DeleteFunc(slices.Clone(all), func(s Selector) bool { return s.options().matchesNothing() })
}

func (all alternatives) matchesNothing() bool { return len(all) > 0 && len(all.possible()) == 0 }

// key identifies the alternatives.
func (all alternatives) key() string {
	var texts []string
	for _, s := range all.possible() {
		texts = append(texts, s.text())
	}
	slices.Sort(texts)
	return strings.Join(slices.Compact(texts), " | ")
}

// validate returns an error if neither the client nor the server can evaluate a field.
func (all alternatives) validate() error {
	for _, s := range all.possible() {
		for _, r := range all.ownFields(s) {
			if r.Field != metav1.ObjectNameField && r.Field != "metadata.namespace" {
				return fmt.Errorf("AnyOf: the server cannot combine %q of some alternatives, and the client cannot evaluate it: set it in FieldSelector or in all alternatives",
					r.Field)
			}
		}
	}
	return nil
}

// ownFields returns the field requirements of s that at least one other alternative lacks.
func (all alternatives) ownFields(s Selector) []fields.Requirement {
	if s.Field == nil {
		return nil
	}
	return slices.DeleteFunc(s.Field.Requirements(), func(r fields.Requirement) bool {
		return !slices.ContainsFunc(all.possible(), func(other Selector) bool {
			return other.Field == nil || !slices.Contains(other.Field.Requirements(), r)
		})
	})
}

// commonFields returns the field requirements that all alternatives have.
func (all alternatives) commonFields() fields.Selector {
	first := all.possible()[0]
	own := all.ownFields(first)
	var common []fields.Selector
	if first.Field != nil {
		for _, r := range first.Field.Requirements() {
			switch {
			case slices.Contains(own, r):
			case r.Operator == selection.NotEquals:
				common = append(common, fields.OneTermNotEqualSelector(r.Field, r.Value))
			default:
				common = append(common, fields.OneTermEqualSelector(r.Field, r.Value))
			}
		}
	}
	return fields.AndSelectors(common...)
}

// commonLabels returns label requirements that every selected object satisfies. It merges the values
// that the alternatives list for the same label into one requirement.
func (all alternatives) commonLabels() labels.Selector {
	requirements := func(s Selector) labels.Requirements {
		if s.Label == nil {
			return nil
		}
		all, _ := s.Label.Requirements()
		return all
	}
	if only := all.possible(); len(only) == 1 && only[0].Label != nil {
		return only[0].Label // filter leaves it to the server
	}
	common := labels.NewSelector()
	for _, r := range requirements(all.possible()[0]) {
		values, differs := sets.New[string](), false
		implied := func(s Selector) bool {
			return slices.ContainsFunc(requirements(s), func(other labels.Requirement) bool {
				if !other.Equal(r) && (other.Key() != r.Key() || !listsValues(r) || !listsValues(other)) {
					return false
				}
				differs = differs || !other.Equal(r)
				values.Insert(other.Values().UnsortedList()...)
				return true
			})
		}
		if slices.ContainsFunc(all.possible(), func(s Selector) bool { return !implied(s) }) {
			continue
		}
		if differs {
			merged, err := labels.NewRequirement(r.Key(), selection.In, sets.List(values))
			if err != nil {
				continue // the client evaluates it
			}
			r = *merged
		}
		common = common.Add(r)
	}
	return common
}

// listsValues reports whether a requirement lists the accepted values of a label.
func listsValues(r labels.Requirement) bool {
	switch r.Operator() {
	case selection.In, selection.Equals, selection.DoubleEquals:
		return true
	}
	return false
}

// filter returns a function that reports whether an alternative selects an object that the server has sent.
// It is nil if the server evaluates everything.
func (all alternatives) filter() func(runtime.Object) bool {
	possible := all.possible()
	if len(possible) < 2 {
		return nil
	}
	ownFields := make([][]fields.Requirement, len(possible))
	for k, s := range possible {
		ownFields[k] = all.ownFields(s)
	}
	return func(object runtime.Object) bool {
		m, err := meta.Accessor(object)
		if err != nil {
			return true
		}
		var objectLabels labels.Labels
		if p, ok := object.(PackedObject); ok {
			objectLabels = p.Labels()
		} else {
			objectLabels = labels.Set(m.GetLabels())
		}
		for k, s := range possible {
			if (s.Label == nil || s.Label.Matches(objectLabels)) && matchesFields(ownFields[k], m) {
				return true
			}
		}
		return false
	}
}

func matchesFields(all []fields.Requirement, object metav1.Object) bool {
	return !slices.ContainsFunc(all, func(r fields.Requirement) bool {
		value := object.GetNamespace()
		if r.Field == metav1.ObjectNameField {
			value = object.GetName()
		}
		return (value == r.Value) == (r.Operator == selection.NotEquals)
	})
}
