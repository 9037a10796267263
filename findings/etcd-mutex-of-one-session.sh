#!/usr/bin/env bash
# etcd v3.7.3, server and Go client: one would expect that two mutexes of one name exclude each other, as two clients do. The holder of a
# concurrency.Mutex is the session, whose lease names the key. Within one session, which a program usually shares, Lock and TryLock of
# a second mutex succeed at once, so that two goroutines hold it together. The first Unlock deletes the key of both: another
# session takes the lock while the second goroutine works. Its Unlock reports no error; only a transaction with IsOwner tells it.
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
	"go.etcd.io/etcd/client/v3/concurrency"
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
	newSession := func() *concurrency.Session {
		session, err := concurrency.NewSession(client)
		if err != nil {
			panic(err)
		}
		return session
	}
	owns := func(mutex *concurrency.Mutex) bool {
		answer, err := client.Txn(ctx).If(mutex.IsOwner()).Commit()
		if err != nil {
			panic(err)
		}
		return answer.Succeeded
	}
	shared := newSession()
	first, second := concurrency.NewMutex(shared, "job"), concurrency.NewMutex(shared, "job")
	other := concurrency.NewMutex(newSession(), "job")
	fmt.Println("first locks:", first.Lock(ctx))
	fmt.Println("second of the session locks:", second.TryLock(ctx))
	fmt.Println("other session locks:", other.TryLock(ctx))
	fmt.Println("owners:", owns(first), owns(second), owns(other))
	fmt.Println("first unlocks:", first.Unlock(ctx))
	fmt.Println("other session locks:", other.TryLock(ctx))
	fmt.Println("owners:", owns(first), owns(second), owns(other))
	fmt.Println("second unlocks:", second.Unlock(ctx))
	_ = client.Close()
	server.Close()
}
END
go get go.etcd.io/etcd/{server,client}/v3@v3.7.3 2>/dev/null
go run . | tee seen
diff - seen <<'END'
first locks: <nil>
second of the session locks: <nil>
other session locks: mutex: Locked by another session
owners: true true false
first unlocks: <nil>
other session locks: <nil>
owners: false false true
second unlocks: <nil>
END
