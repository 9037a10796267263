#!/usr/bin/env bash
# etcd v3.7.3, server and Go client: one would expect that a sorted range with a limit holds the first keys of
# that order. A sort target without an order sorts ascending, and etcdctl documents ASCEND as its default.
# With a limit the server then takes the first keys by name, one more than the limit, and sorts only these.
# WithSort with SortNone, as etcdctl sends it for "--sort-by=CREATE --limit=1", thus returns a key that is not
# the oldest. The answer says only that there are more. With ASCEND the server sorts all keys first.
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
	for _, name := range []string{"d", "c", "b", "a"} {
		if _, err := client.Put(ctx, "jobs/"+name, ""); err != nil {
			panic(err)
		}
	}
	for _, order := range []struct {
		text  string
		order clientv3.SortOrder
	}{{"no order", clientv3.SortNone}, {"ascending", clientv3.SortAscend}} {
		for _, limit := range []int64{0, 1, 2} {
			answer, err := client.Get(ctx, "jobs/", clientv3.WithPrefix(), clientv3.WithLimit(limit),
				clientv3.WithSort(clientv3.SortByCreateRevision, order.order))
			if err != nil {
				panic(err)
			}
			fmt.Printf("by creation, %s, limit %d:", order.text, limit)
			for _, pair := range answer.Kvs {
				fmt.Printf(" %s", pair.Key)
			}
			fmt.Println(", more:", answer.More)
		}
	}
	_ = client.Close()
	server.Close()
}
END
go get go.etcd.io/etcd/{server,client}/v3@v3.7.3 2>/dev/null
go run . | tee seen
diff - seen <<'END'
by creation, no order, limit 0: jobs/d jobs/c jobs/b jobs/a, more: false
by creation, no order, limit 1: jobs/b, more: true
by creation, no order, limit 2: jobs/c jobs/b, more: true
by creation, ascending, limit 0: jobs/d jobs/c jobs/b jobs/a, more: false
by creation, ascending, limit 1: jobs/d, more: true
by creation, ascending, limit 2: jobs/d jobs/c, more: true
END
