package discovery

import (
	"errors"
	"fmt"
	"testing"
)

// manyGroups returns the sample groups and 50 groups with 1,000 custom resources.
func manyGroups() []group {
	groups := sampleGroups()
	for g := range 50 {
		out := group{Name: fmt.Sprintf("group%02d.example.com", g),
			Versions: []version{{Name: "v1"}, {Name: "v1beta1"}}}
		for i := range 20 {
			r := resource{
				Name: fmt.Sprintf("things%02dx%02ds", g, i), Singular: fmt.Sprintf("things%02dx%02d", g, i),
				Kind: fmt.Sprintf("Things%02dX%02d", g, i), Namespaced: true, Verbs: customVerbs,
				ShortNames: []string{fmt.Sprintf("t%02d%02d", g, i)}, Categories: []string{"things"},
			}
			out.Versions[0].Resources = append(out.Versions[0].Resources, r)
			out.Versions[1].Resources = append(out.Versions[1].Resources, r)
		}
		groups = append(groups, out)
	}
	return groups
}

func BenchmarkResolve(b *testing.B) {
	c := newCatalog(manyGroups())
	for _, name := range []string{"things25x10s", "Things25X10", "t2510",
		"things25x10s.v1.group25.example.com", "things", "*.group25.example.com", "*"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Resolve(name); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("miss", func(b *testing.B) {
		b.ReportAllocs()
		var miss *NoMatchError
		for b.Loop() {
			if _, err := c.Resolve("thigs25x10s.group25.example.com"); !errors.As(err, &miss) {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkClientResolve(b *testing.B) {
	server := newAPIServer(b, manyGroups()...)
	b.Run("warm", func(b *testing.B) {
		client := server.client(b, Options{})
		if _, err := client.Catalog(b.Context()); err != nil {
			b.Fatal(err)
		}
		server.takeRequests()
		for b.Loop() {
			if _, err := client.Resolve(b.Context(), "things25x10s.group25.example.com"); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(server.takeRequests()))/float64(b.N), "requests/op")
	})
	b.Run("cold", func(b *testing.B) {
		for b.Loop() {
			if _, err := server.client(b, Options{}).Resolve(b.Context(),
				"things25x10s.group25.example.com"); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(server.takeRequests()))/float64(b.N), "requests/op")
	})
}

func BenchmarkNewCatalog(b *testing.B) {
	groups := manyGroups()
	b.ReportAllocs()
	for b.Loop() {
		newCatalog(groups)
	}
}

func BenchmarkTrackerState(b *testing.B) {
	defs := definitions(1000)
	s := newState(DefaultDiscoveryLag)
	if _, err := s.replaceCRDs(defs, nil, epoch); err != nil {
		b.Fatal(err)
	}
	s.applyCatalog(catalogAt(0, manyGroups()...))
	b.Run("one CRD event", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			s.putCRD(definition("r500", fmt.Sprint(i)))
		}
	})
	b.Run("discovery round", func(b *testing.B) {
		c := catalogAt(0, manyGroups()...)
		for b.Loop() {
			s.applyCatalog(c)
		}
	})
}
