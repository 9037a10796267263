package packed

import "testing"

// TestAge follows what an object remembers of its reads.
func TestAge(t *testing.T) {
	o, err := NewPacker(nil).Pack(
		[]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"b","labels":{"é":""}}}`))
	if err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		read bool
		want Use
	}{
		{false, Use{Age: 1}},
		{true, Use{Read: true}},
		{false, Use{Age: 1}},
		{false, Use{Age: 2}},
		{true, Use{Read: true, Again: true, Used: true}},
		{false, Use{Used: true, Age: 1}},
		{false, Use{Used: true, Age: 2}},
		{false, Use{Used: true, Age: 3}},
		{false, Use{Used: true, Age: 4}},
		{false, Use{Used: true, Age: 5}},
		{false, Use{Age: MaxAge}},
		{false, Use{Age: MaxAge}},
		{true, Use{Read: true}},
	}
	for n, step := range steps {
		if step.read {
			o.MarkRead()
		}
		if use := o.Age(); use != step.want {
			t.Errorf("step %d: %+v, want %+v", n, use, step.want)
		}
	}
	o.SetUsed()
	o.SetStays()
	if use := o.Use(); use != (Use{Used: true, Stays: true}) {
		t.Errorf("in the end: %+v", use)
	}
	if o.Namespace() != "b" || o.Name() != "a" || !o.oddLabels() {
		t.Errorf("the object is %s in %s", o.Name(), o.Namespace())
	}
}

// TestReads lists what counts as a read.
func TestReads(t *testing.T) {
	text := []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}`)
	nothing := func([]byte) error { return nil }
	for what, use := range map[string]struct {
		use   func(o *Object)
		reads bool
	}{
		"Unstructured": {func(o *Object) { o.Unstructured() }, true},
		"View":         {func(o *Object) { _ = o.View(nothing) }, true},
		"AppendJSON":   {func(o *Object) { _, _ = o.AppendJSON(nil) }, true},
		"annotations":  {func(o *Object) { o.GetAnnotations() }, true},
		"Shown":        {func(o *Object) { o.Shown() }, false},
		"Peek":         {func(o *Object) { _ = o.Peek(nothing) }, false},
		"Decode":       {func(o *Object) { _, _ = o.Decode() }, false},
		"identity":     {func(o *Object) { o.Key(); o.GetName(); o.GetUID(); o.GetLabels() }, false},
	} {
		o, err := NewPacker(nil).Pack(text)
		if err != nil {
			t.Fatal(err)
		}
		if use.use(o); o.Use().Read != use.reads {
			t.Errorf("%s counts as a read: %v", what, !use.reads)
		}
	}
}
