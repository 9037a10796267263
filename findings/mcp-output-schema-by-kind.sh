#!/usr/bin/env bash
# MCP go-sdk v1.8.0 with jsonschema-go v0.4.3: one would expect that a typed tool can return any value of its output type, because the
# SDK infers the schema from the same type that it marshals. The schema follows Go's kinds, the output follows the JSON methods and
# tags. AddTool accepts the type, and each call fails with "validating tool output" for a []byte, json.RawMessage, netip.Addr or
# *big.Int, and for a number with the tag option string. A nil slice passes as null, a nil map does not, so that such a tool works
# until its first answer without labels.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"net/netip"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// call returns the answer of a tool whose output holds value.
func call[T any](name string, value T) {
	type output struct {
		Value T `json:"value"`
	}
	fmt.Println(name+":", answer(output{value}))
}

func answer[T any](output T) string {
	ctx := context.Background()
	server := mcp.NewServer(&mcp.Implementation{Name: "server"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "get"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, T, error) {
		return nil, output, nil
	})
	forClient, forServer := mcp.NewInMemoryTransports()
	if _, err := server.Connect(ctx, forServer, nil); err != nil {
		panic(err)
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "client"}, nil).Connect(ctx, forClient, nil)
	if err != nil {
		panic(err)
	}
	defer session.Close()
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "get"})
	if err != nil || result.IsError {
		return "rejected"
	}
	encoded, _ := json.Marshal(result.StructuredContent)
	return string(encoded)
}

func main() {
	call("slice", []string(nil))
	call("map", map[string]string{"app": "web"})
	call("nil map", map[string]string(nil))
	call("[]byte", []byte("abc"))
	call("RawMessage", json.RawMessage(`{"kind":"Pod"}`))
	call("time", time.Unix(0, 0).UTC())
	call("address", netip.MustParseAddr("10.0.0.1"))
	call("big integer", big.NewInt(5))
	fmt.Println("quoted number:", answer(struct {
		Value int64 `json:"value,string"`
	}{5}))
}
END
go get github.com/modelcontextprotocol/go-sdk@v1.8.0 2>/dev/null
go run . | tee seen
diff - seen <<'END'
slice: {"value":null}
map: {"value":{"app":"web"}}
nil map: rejected
[]byte: rejected
RawMessage: rejected
time: {"value":"1970-01-01T00:00:00Z"}
address: rejected
big integer: rejected
quoted number: rejected
END
