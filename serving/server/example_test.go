package server_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/crdcache/crdcache/serving/server"
)

// Omitted fields have defaults, and misspelled ones are errors.
func ExampleLoadConfig() {
	folder, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, "crdcached.yaml")
	for _, text := range []string{
		"apiVersion: crdcache.dev/v1beta1\nkind: ServerConfig\ntypes: ['*.cert-manager.io']\n",
		"apiVersion: crdcache.dev/v1beta1\nkind: ServerConfig\ntipes: ['*.cert-manager.io']\n",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			panic(err)
		}
		config, err := server.LoadConfig(file)
		fmt.Println(config.Types, config.Secrets, err != nil)
	}
	// Output:
	// [*.cert-manager.io] false false
	// [] false true
}
