package main

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Sizes of a Certificate as compact JSON, including managedFields.
const (
	sizeSmall = "small" // about 2 KB
	sizeLarge = "large" // about 10 KB
)

// objectContent is an object without its identity.
type objectContent struct {
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

// firstCreation is the earliest creation time. The latest creation time is 90 days later.
var firstCreation = time.Date(2026, 1, 5, 6, 0, 0, 0, time.UTC)

var (
	applications = []string{"checkout", "payments", "catalog", "search", "identity", "billing",
		"gateway", "inventory"}
	roles = []string{"api", "web", "worker", "admin", "internal", "edge"}
)

// newIdentity derives the identity of an object from a seed and its index.
func newIdentity(seed uint64, index, namespaces int) objectIdentity {
	rng := rand.New(rand.NewPCG(seed, uint64(index)))
	return objectIdentity{
		name: fmt.Sprintf("%s-%s-%06x-%05d", randomElement(rng, applications), randomElement(rng, roles),
			seed&0xffffff, index),
		namespace: namespaceName(index % namespaces),
		uid:       newUID(rng),
		created:   firstCreation.Add(time.Duration(rng.IntN(90*24*3600)) * time.Second),
		rng:       rng,
	}
}

func namespaceName(n int) string { return fmt.Sprintf("team-%03d", n) }

func randomElement[T any](rng *rand.Rand, list []T) T { return list[rng.IntN(len(list))] }

// newUID returns a version 4 UUID.
func newUID(rng *rand.Rand) string {
	high, low := rng.Uint64()&^0xf000|0x4000, rng.Uint64()&^(0xc<<60)|0x8<<60
	return fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", high>>32, high>>16&0xffff, high&0xffff, low>>48, low&(1<<48-1))
}

func timestamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
