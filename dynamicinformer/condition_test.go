package dynamicinformer

import (
	"errors"
	"testing"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
)

type failingSource struct{ err error }

func (failingSource) Subscribe(typesource.Listener) (stop func()) { return func() {} }
func (t failingSource) Err() error                                { return t.err }

// TestConditionsExplainTheSource: the condition's message contains the error of the source of types.
func TestConditionsExplainTheSource(t *testing.T) {
	want := "waiting to learn which types the server has"
	for _, tt := range []struct {
		source typesource.Source
		want   string
	}{{failingSource{errors.New("no\nway")}, want + ": no way"}, {failingSource{}, want}, {&scriptedSource{}, want}} {
		f := newFactory(t, newServer(t), Options{Types: tt.source})
		for _, c := range f.Conditions() {
			if (c.Type == status.ConditionReady || c.Type == status.ConditionTypesKnown) &&
				c.Message != tt.want {
				t.Errorf("%T: the message of %s is %q, want %q", tt.source, c.Type, c.Message, tt.want)
			}
			if other := f.Condition(c.Type); other != c {
				t.Errorf("Condition returns %+v, Conditions %+v", other, c)
			}
		}
	}
}
