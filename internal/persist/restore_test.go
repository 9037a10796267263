package persist

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/crdcache/crdcache/dynamicinformer/persistence"
	"github.com/crdcache/crdcache/internal/follow"
)

func TestRestorerMatches(t *testing.T) {
	at := persistence.Checkpoint{APIVersion: "v1", UID: "u1"}
	for _, c := range []struct {
		restorer *restorer
		matches  bool
	}{
		{&restorer{partition: follow.PartitionSpec{Version: "v1"}, uid: "u1"}, true},
		{&restorer{partition: follow.PartitionSpec{Version: "v1"}}, true},
		{&restorer{partition: follow.PartitionSpec{Version: "v1"}, uid: "u2"}, false},
		{&restorer{partition: follow.PartitionSpec{Version: "v2"}, uid: "u1"}, false},
	} {
		if got := c.restorer.matchesType(at); got != c.matches {
			t.Errorf("%s %s: matchesType() = %v, want %v", c.restorer.partition.Version, c.restorer.uid, got,
				c.matches)
		}
	}
	c := cluster{endpoint: func() string { return "here" }}
	for _, x := range []struct {
		at      persistence.Checkpoint
		uid     string
		matches bool
	}{
		{persistence.Checkpoint{Endpoint: "here", Cluster: "a"}, "a", true},
		{persistence.Checkpoint{Endpoint: "there", Cluster: "a"}, "a", true},
		{persistence.Checkpoint{Endpoint: "here", Cluster: "a"}, "b", false},
		{persistence.Checkpoint{Endpoint: "here", Cluster: "a"}, "", true},
		{persistence.Checkpoint{Endpoint: "there", Cluster: "a"}, "", false},
		{persistence.Checkpoint{Endpoint: "here"}, "b", true},
		{persistence.Checkpoint{}, "", false},
	} {
		if got := c.matchesCheckpoint(x.at, types.UID(x.uid)); got != x.matches {
			t.Errorf("matchesCheckpoint(%+v, %q) = %v, want %v", x.at, x.uid, got, x.matches)
		}
	}
}
