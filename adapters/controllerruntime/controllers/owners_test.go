package controllers

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
)

// TestOwners compares the owners of an object, which buckets find, with those of all selectors that
// match it.
func TestOwners(t *testing.T) {
	var owners Owners[string]
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
		owners.Set(fmt.Sprint(n), all[n])
	}
	for _, name := range []string{"a", "b"} {
		for _, set := range []labels.Set{nil, {"team": "red"}, {"team": "blue", "app": "shop"},
			{"team": "red", "app": "shop", "tier": "web"}} {
			found := owners.Of("web", name, set)
			for n, o := range all {
				want := slices.Contains([]string{"", "web"}, o.Namespace) &&
					slices.Contains([]string{"", name}, o.Name) && o.Labels.Matches(set)
				if _, got := found[fmt.Sprint(n)]; got != want {
					t.Errorf("%s with %v: %+v selects it: %v, want %v", name, set, o, got, want)
				}
			}
		}
	}
	for n := range all {
		owners.Set(fmt.Sprint(n))
	}
	if len(owners.buckets) > 0 || len(owners.selected) > 0 || owners.Len() > 0 {
		t.Errorf("without owners, the buckets are %v", owners.buckets)
	}
}

// BenchmarkSelectedEvent measures an event among 5,000 instances that select by a common and an own label.
func BenchmarkSelectedEvent(b *testing.B) {
	var owners Owners[string]
	for n := range 5000 {
		selector := labels.SelectorFromSet(labels.Set{"app": "shop", "instance": fmt.Sprint(n)})
		owners.Set(fmt.Sprint(n), Objects{Labels: selector})
	}
	set := labels.Set{"app": "shop", "instance": "7", "tier": "web"}
	b.ReportAllocs()
	for b.Loop() {
		if found := owners.Of("web", "a", set); len(found) != 1 {
			b.Fatalf("%d instances, want 1", len(found))
		}
	}
}
