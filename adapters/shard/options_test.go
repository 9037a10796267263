package shard

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

func TestOptions(t *testing.T) {
	validOptions := func() Options {
		return Options{Config: &rest.Config{}, Namespace: "operators",
			Name: "delivery"}
	}
	if _, err := New(validOptions()); err != nil {
		t.Errorf("New() with the defaults = %v", err)
	}
	for name, tt := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"no config":       {func(o *Options) { o.Config = nil }, "Config is missing"},
		"no namespace":    {func(o *Options) { o.Namespace = "" }, "Namespace is missing"},
		"no name":         {func(o *Options) { o.Name = "" }, `Name ""`},
		"a long name":     {func(o *Options) { o.Name = strings.Repeat("a", 41) }, "at most 40"},
		"no DNS label":    {func(o *Options) { o.Name = "A" }, `Name "A"`},
		"no label value":  {func(o *Options) { o.Layout = "a b" }, `Layout "a b"`},
		"too many shards": {func(o *Options) { o.Shards = 1025 }, "Shards is 1025"},
		"negative shards": {func(o *Options) { o.Shards = -1 }, "Shards is -1"},
		"fraction of a second": {func(o *Options) { o.LeaseDuration = 40500 * time.Millisecond },
			"whole seconds"},
		"a late deadline": {func(o *Options) { o.RenewDeadline = 40 * time.Second },
			"less than LeaseDuration"},
		"one try":                {func(o *Options) { o.RetryPeriod = 25 * time.Second }, "a second attempt"},
		"a negative period":      {func(o *Options) { o.RetryPeriod = -time.Second }, "RetryPeriod -1s"},
		"negative drain timeout": {func(o *Options) { o.DrainTimeout = -time.Second }, "DrainTimeout"},
	} {
		t.Run(name, func(t *testing.T) {
			o := validOptions()
			tt.change(&o)
			if _, err := New(o); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the error is %v, want %q", err, tt.want)
			}
		})
	}
}

func TestStatic(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	seen := map[int]int{}
	for ordinal := range 3 {
		fixed, err := Static(ordinal, 3, 64)
		if err != nil {
			t.Fatal(err)
		}
		drained := make(chan int, 64)
		got := 0
		err = fixed.Run(ctx, Handler{
			Acquired: func(ownerships []*Ownership) {
				for _, ownership := range ownerships {
					seen[ownership.Shard()]++
					got++
					if !ownership.Valid() || ownership.Token() != 0 {
						t.Errorf("shard %d: Valid() = false or Token() = %d, want true, 0", ownership.Shard(),
							ownership.Token())
					}
				}
			},
			Drain: func(_ context.Context, ownership *Ownership) { drained <- ownership.Shard() },
		})
		if err != nil || got < 21 || got > 22 || len(drained) != got {
			t.Errorf("replica %d: Run() = %v with %d shards, of which %d were drained; want 21 or 22",
				ordinal, err, got, len(drained))
		}
	}
	for k := range 64 {
		if seen[k] != 1 {
			t.Errorf("shard %d belongs to %d replicas, want 1", k, seen[k])
		}
	}
	for _, invalid := range [][3]int{{3, 3, 64}, {-1, 3, 64}, {0, 0, 64}, {0, 1, 0}, {0, 1, 1025}} {
		if _, err := Static(invalid[0], invalid[1], invalid[2]); err == nil {
			t.Errorf("Static(%v) succeeded, want an error", invalid)
		}
	}
}
