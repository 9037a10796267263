package packed

import "testing"

func TestAge(t *testing.T) {
	o, err := NewPacker(nil).Pack(
		[]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"b","labels":{"é":""}}}`))
	if err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		read bool
		want Usage
	}{
		{false, Usage{Age: 1}},
		{true, Usage{Read: true}},
		{false, Usage{Age: 1}},
		{false, Usage{Age: 2}},
		{true, Usage{Read: true, ReadBefore: true, InUse: true}},
		{false, Usage{InUse: true, Age: 1}},
		{false, Usage{InUse: true, Age: 2}},
		{false, Usage{InUse: true, Age: 3}},
		{false, Usage{InUse: true, Age: 4}},
		{false, Usage{InUse: true, Age: 5}},
		{false, Usage{Age: MaxAge}},
		{false, Usage{Age: MaxAge}},
		{true, Usage{Read: true}},
	}
	for n, step := range steps {
		if step.read {
			o.MarkRead()
		}
		if use := o.StartReadPeriod(); use != step.want {
			t.Errorf("step %d: StartReadPeriod() = %+v, want %+v", n, use, step.want)
		}
	}
	o.SetInUse()
	o.SetIncompressible()
	if use := o.Usage(); use != (Usage{InUse: true, Incompressible: true}) {
		t.Errorf("Usage() = %+v, want in use and incompressible", use)
	}
	if o.Namespace() != "b" || o.Name() != "a" || !o.hasComplexLabels() {
		t.Errorf("the object is %s in namespace %s, want a in b", o.Name(), o.Namespace())
	}
}
