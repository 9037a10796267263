package indexers

import "github.com/crdcache/crdcache/indexers/jsonpath"

// LabelKey gives a key under which the index holds every object that has the label with this value, so
// that a search by labels can begin there. Where values are changed before they are indexed, there may
// be other objects under it. It is false when there is no such key: the index is over something else,
// or leaves some of these objects out.
func (i *Index) LabelKey(label, value string) (string, bool) {
	if label == "" || label != i.label {
		return "", false
	}
	key, outcome := keyOf(&i.parts[0], scalar{jsonpath.KindString, value}, i.Sorted)
	return key.key, outcome == keyed && key.size <= i.maxValueBytes
}

// labelOf gives the label that an index is over, if it is over all objects that have it; else "".
func labelOf(i *Index) string {
	if i.each != nil || i.when != nil || len(i.inner) != 1 {
		return ""
	}
	path := i.sources[0][0].path
	steps := path.Steps()
	if len(steps) != 3 || !path.Singular() || !named(steps[0], "metadata") || !named(steps[1], "labels") {
		return ""
	}
	return steps[2].Selectors[0].Name
}

func named(step jsonpath.Step, name string) bool { return step.Selectors[0].Name == name }
