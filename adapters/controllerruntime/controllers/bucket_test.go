package controllers

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func objectWith(name string, set labels.Set) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: name, Labels: set}}
}

// TestInstancesOf compares the instances of an object, which buckets find, with those of all selectors that
// match it.
func TestInstancesOf(t *testing.T) {
	p := newPart(Type{})
	var all []Objects
	for _, text := range []string{"", "team=red", "team in (red)", "team in (red,blue)", "team!=red", "team",
		"app==shop,team=red", "app=shop,team=blue", "app=shop,tier notin (web)"} {
		selector, err := labels.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, namespace := range []string{"", "web", "db"} {
			all = append(all, Objects{Namespace: namespace, Labels: selector},
				Objects{Namespace: namespace, Name: "a", Labels: selector})
		}
	}
	for n := range all {
		p.change(instance{name: named(fmt.Sprint(n))}, nil, all[n:n+1])
	}
	for _, name := range []string{"a", "b"} {
		for _, set := range []labels.Set{nil, {"team": "red"}, {"team": "blue", "app": "shop"},
			{"team": "red", "app": "shop", "tier": "web"}} {
			found := p.instancesOf(objectWith(name, set))
			for n, o := range all {
				want := slices.Contains([]string{"", "web"}, o.Namespace) &&
					slices.Contains([]string{"", name}, o.Name) && o.Labels.Matches(set)
				if _, got := found[instance{name: named(fmt.Sprint(n))}]; got != want {
					t.Errorf("%s with %v: %+v selects it: %v, want %v", name, set, o, got, want)
				}
			}
		}
	}
	for n := range all {
		p.change(instance{name: named(fmt.Sprint(n))}, all[n:n+1], nil)
	}
	if len(p.mu.buckets) > 0 || len(p.mu.selected) > 0 {
		t.Errorf("without instances, the buckets are %v", p.mu.buckets)
	}
}

// BenchmarkSelectedEvent measures an event among 5,000 instances that select by a common and an own label.
func BenchmarkSelectedEvent(b *testing.B) {
	p := newPart(Type{})
	for n := range 5000 {
		selector := labels.SelectorFromSet(labels.Set{"app": "shop", "instance": fmt.Sprint(n)})
		p.change(instance{name: named(fmt.Sprint(n))}, nil, []Objects{{Labels: selector}})
	}
	object := objectWith("a", labels.Set{"app": "shop", "instance": "7", "tier": "web"})
	b.ReportAllocs()
	for b.Loop() {
		if found := p.instancesOf(object); len(found) != 1 {
			b.Fatalf("%d instances, want 1", len(found))
		}
	}
}
