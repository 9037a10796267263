package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSharding: replicas with the same config differ in their ordinals alone, and have everything together.
func TestSharding(t *testing.T) {
	config, err := LoadConfig("../packaging/crdcached/example-sharded/server.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for ordinal := range 3 {
		config.Sharding.Ordinal = &ordinal
		if err := config.Validate(); err != nil {
			t.Fatal(err)
		}
		base, err := config.Sharding.peer(ordinal)
		if err != nil || base.Host != fmt.Sprintf("crdcached-%d.crdcached-peers.crdcached.svc:8443", ordinal) {
			t.Errorf("the replica %d is at %v (%v)", ordinal, base, err)
		}
	}
	options := NewOptions()
	options.Config = config
	options.trustPeers()
	if got := options.Authentication.RequestHeader; got.ClientCAFile != "/etc/crdcached-peer/ca.crt" || cmp.Diff([]string{"crdcached-peer"}, got.AllowedNames) != "" {
		t.Errorf("those are believed who are signed by %q and called %q", got.ClientCAFile, got.AllowedNames)
	}
}

func TestShardingThatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"sharding: {}":                                             "sharding.replicas: 0 is less than 1",
		"sharding: {key: uid}":                                     `sharding.key: "uid" is not metadata.uid`,
		"sharding: {replicas: 2, ordinal: 2}":                      "sharding.ordinal: 2 is not below",
		"sharding: {replicas: 2, peers: ['https://a:1']}":          "sharding.peers: there are 1 addresses of 2",
		"sharding: {replicas: 1, peers: ['http://a-{ordinal}:1']}": "not of the form https://",
		"sharding: {replicas: 1, ordinal: 0}":                      "sharding.keyFile: there is none",
		"page: {enabled: true}\nsharding: {}":                      "page.enabled: a page of one replica",
		"persistenceDirectory: /a\nsharding: {}":                   "persistenceDirectory: parts of the objects",
	} {
		config, err := LoadConfig(write(t, header+"types: [a]\n"+text))
		if err == nil {
			err = config.Validate()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %v, want %q", text, err, want)
		}
	}
}
