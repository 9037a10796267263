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

	"github.com/crdcache/crdcache/internal/naming"
)

// Selector is an alternative of ResourceOptions.AnyOf. It selects the objects that both of its selectors
// select. A nil selector selects everything.
type Selector struct {
	Label labels.Selector
	Field fields.Selector
}

// text identifies a selector that can match.
func (s Selector) text() string {
	text := ""
	if s.Label != nil {
		text = s.Label.String()
	}
	if len(s.fieldRequirements()) == 0 {
		return text
	}
	return strings.TrimPrefix(text+" ", " ") + "with fields " + s.Field.String()
}

// matchesNothing reports whether the selector matches no object. The text of such a selector is empty: sent
// to a server, it would select everything.
func (s Selector) matchesNothing() bool {
	return s.Label != nil && !s.Label.Empty() && s.Label.String() == "" ||
		s.Field != nil && !s.Field.Empty() && s.Field.String() == ""
}

func (s Selector) labelRequirements() labels.Requirements {
	if s.Label == nil {
		return nil
	}
	all, _ := s.Label.Requirements()
	return all
}

func (s Selector) fieldRequirements() fields.Requirements {
	if s.Field == nil {
		return nil
	}
	return s.Field.Requirements()
}

// isEvaluable reports whether the client can evaluate a field.
func isEvaluable(r fields.Requirement) bool {
	return r.Field == metav1.ObjectNameField || r.Field == "metadata.namespace"
}

// alternatives is the value of ResourceOptions.AnyOf. Nil selects everything.
type alternatives []Selector

// possible returns the alternatives that can match.
func (all alternatives) possible() alternatives {
	return slices.DeleteFunc(slices.Clone(all), Selector.matchesNothing)
}

func (all alternatives) matchesNothing() bool { return len(all) > 0 && len(all.possible()) == 0 }

// validate returns an error if neither the client nor the server can evaluate a field.
func (all alternatives) validate() error {
	for _, s := range all.possible() {
		for _, r := range all.ownFields(s) {
			if !isEvaluable(r) {
				return fmt.Errorf("AnyOf: the server cannot combine %q of some alternatives, and the client cannot evaluate it: set it in FieldSelector or in all alternatives",
					r.Field)
			}
		}
	}
	return nil
}

// ownFields returns the field requirements of s that at least one other alternative lacks.
func (all alternatives) ownFields(s Selector) []fields.Requirement {
	return slices.DeleteFunc(s.fieldRequirements(), func(r fields.Requirement) bool {
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
	for _, r := range first.fieldRequirements() {
		switch {
		case slices.Contains(own, r):
		case r.Operator == selection.NotEquals:
			common = append(common, fields.OneTermNotEqualSelector(r.Field, r.Value))
		default:
			common = append(common, fields.OneTermEqualSelector(r.Field, r.Value))
		}
	}
	return fields.AndSelectors(common...)
}

// commonLabels returns label requirements that every selected object satisfies. It merges the values
// that the alternatives list for the same label into one requirement.
func (all alternatives) commonLabels() labels.Selector {
	possible := all.possible()
	if len(possible) == 1 && possible[0].Label != nil {
		return possible[0].Label // filter leaves it to the server
	}
	common := labels.NewSelector()
	for _, r := range possible[0].labelRequirements() {
		values, differs := sets.New[string](), false
		implied := func(s Selector) bool {
			return slices.ContainsFunc(s.labelRequirements(), func(other labels.Requirement) bool {
				if !other.Equal(r) && (other.Key() != r.Key() || !listsValues(r) || !listsValues(other)) {
					return false
				}
				differs = differs || !other.Equal(r)
				values.Insert(other.Values().UnsortedList()...)
				return true
			})
		}
		if slices.ContainsFunc(possible, func(s Selector) bool { return !implied(s) }) ||
			differs && len(values) > maxMergedValues {
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

// maxMergedValues is the maximum number of values of a merged requirement, which is part of a URL of limited
// length. The client evaluates requirements with more.
const maxMergedValues = 100

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
	ownFields := naming.Map(possible, all.ownFields)
	return func(object runtime.Object) bool {
		m, err := meta.Accessor(object)
		if err != nil {
			return true
		}
		objectLabels := labelsOf(object, m)
		for k, s := range possible {
			if s.matches(objectLabels, ownFields[k], m) {
				return true
			}
		}
		return false
	}
}

// labelsOf returns the labels of an object. It does not copy the labels of a packed object.
func labelsOf(object any, m metav1.Object) labels.Labels {
	if p, ok := object.(PackedObject); ok {
		return p.Labels()
	}
	return labels.Set(m.GetLabels())
}

// matches reports whether the labels and some fields of an object match.
func (s Selector) matches(objectLabels labels.Labels, own []fields.Requirement, object metav1.Object) bool {
	if s.Label != nil && !s.Label.Matches(objectLabels) {
		return false
	}
	return !slices.ContainsFunc(own, func(r fields.Requirement) bool {
		value := object.GetNamespace()
		if r.Field == metav1.ObjectNameField {
			value = object.GetName()
		}
		return (value == r.Value) == (r.Operator == selection.NotEquals)
	})
}
