#!/usr/bin/env bash
# etcd v3.7.3, server and Go client: one would expect that a comparison and its opposite have opposite results, and that a condition on
# all keys of a prefix holds if there are none. For the value of an absent key every comparison fails: it is neither equal nor unequal
# to anything, and an empty prefix has not all values "done". The other targets take an absent key for one with zeros: its version, its
# lease and the leases of an empty prefix are equal to 0. A guard "if the value is not done" thus skips the key that nobody wrote yet.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"context"
	"fmt"
	"net/url"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
)

func main() {
	ctx := context.Background()
	config := embed.NewConfig()
	config.Dir, config.LogLevel = "data", "panic"
	config.ListenPeerUrls = []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	config.ListenClientUrls = []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	server, err := embed.StartEtcd(config)
	if err != nil {
		panic(err)
	}
	<-server.Server.ReadyNotify()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Clients[0].Addr().String()}})
	if err != nil {
		panic(err)
	}
	if _, err := client.Put(ctx, "present", "open"); err != nil {
		panic(err)
	}
	for _, key := range []string{"present", "absent"} {
		for _, condition := range []struct {
			text    string
			compare clientv3.Cmp
		}{
			{`value = "done"`, clientv3.Compare(clientv3.Value(key), "=", "done")},
			{`value != "done"`, clientv3.Compare(clientv3.Value(key), "!=", "done")},
			{`value = ""`, clientv3.Compare(clientv3.Value(key), "=", "")},
			{"version = 0", clientv3.Compare(clientv3.Version(key), "=", 0)},
			{`each value of the prefix != "done"`, clientv3.Compare(clientv3.Value(key), "!=", "done").WithPrefix()},
			{"each lease of the prefix = 0", clientv3.Compare(clientv3.LeaseValue(key), "=", 0).WithPrefix()},
		} {
			answer, err := client.Txn(ctx).If(condition.compare).Commit()
			if err != nil {
				panic(err)
			}
			fmt.Printf("%s key: %s: %t\n", key, condition.text, answer.Succeeded)
		}
	}
	_ = client.Close()
	server.Close()
}
END
go get go.etcd.io/etcd/{server,client}/v3@v3.7.3 2>/dev/null
go run . | tee seen
diff - seen <<'END'
present key: value = "done": false
present key: value != "done": true
present key: value = "": false
present key: version = 0: false
present key: each value of the prefix != "done": true
present key: each lease of the prefix = 0: true
absent key: value = "done": false
absent key: value != "done": false
absent key: value = "": false
absent key: version = 0: true
absent key: each value of the prefix != "done": false
absent key: each lease of the prefix = 0: true
END
