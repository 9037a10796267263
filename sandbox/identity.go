package main

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"time"
)

// Size is the size of generated objects.
type Size string

// Sizes of a Certificate as compact JSON, including managedFields.
const (
	Small Size = "small" // about 2 KB
	Large Size = "large" // about 10 KB
)

// ParseSize parses a command-line argument.
func ParseSize(s string) (Size, error) {
	switch size := Size(s); size {
	case Small, Large:
		return size, nil
	default:
		return "", fmt.Errorf("unknown size %q: want %q or %q", s, Small, Large)
	}
}

// objectContent is an object without its identity.
type objectContent struct {
	// shape is the name of the set of fields that the object has. Objects with the same shape have the same
	// managedFields.
	shape       string
	labels      map[string]any
	annotations map[string]any
	// body has spec, status and other top-level fields.
	body map[string]any
}

// objectIdentity has the values that distinguish one object from another.
type objectIdentity struct {
	name      string
	namespace string
	uid       string
	created   time.Time
	rng       *rand.Rand
}

// firstCreation is the earliest creation time. The latest one is 90 days later.
var firstCreation = time.Date(2026, 1, 5, 6, 0, 0, 0, time.UTC)

var (
	applications = []string{"checkout", "payments", "catalog", "search", "identity", "billing",
		"gateway", "inventory"}
	roles = []string{"api", "web", "worker", "admin", "internal", "edge"}
)

// newIdentity derives the identity of object i from a seed.
func newIdentity(seed uint64, i, namespaces int) objectIdentity {
	rng := rand.New(rand.NewPCG(seed, uint64(i)))
	return objectIdentity{
		name: fmt.Sprintf("%s-%s-%06x-%05d", randomElement(rng, applications), randomElement(rng, roles),
			seed&0xffffff, i),
		namespace: namespaceName(i % namespaces),
		uid:       newUID(rng),
		created:   firstCreation.Add(time.Duration(rng.IntN(90*24*3600)) * time.Second),
		rng:       rng,
	}
}

func namespaceName(n int) string { return fmt.Sprintf("team-%03d", n) }

func randomElement[T any](rng *rand.Rand, from []T) T { return from[rng.IntN(len(from))] }

// newUID returns a version 4 UUID.
func newUID(rng *rand.Rand) string {
	var b [16]byte
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	s := hex.EncodeToString(b[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

func timestamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
