package local

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
)

// Identity names the cluster and the user of a config: two configs that could be answered differently have different ones.
// Files count with what is in them, but for tokens, which are renewed. Where a program gets tokens, its environment counts,
// which often names the user, as AWS_PROFILE does.
func Identity(config *rest.Config) (string, error) {
	said := struct {
		Host, APIPath, Username, Password, Token, TokenFile string
		Impersonate                                         rest.ImpersonationConfig
		ServerName                                          string
		Insecure                                            bool
		Files                                               []string
		Exec, AuthProvider                                  any
		Proxy                                               string
	}{
		Host: config.Host, APIPath: config.APIPath, Username: config.Username, Password: config.Password,
		Token: config.BearerToken, TokenFile: config.BearerTokenFile, Impersonate: config.Impersonate,
		ServerName: config.ServerName, Insecure: config.Insecure, AuthProvider: config.AuthProvider,
	}
	if config.BearerTokenFile != "" {
		said.Token = "" // which is what the file had when the config was read
	}
	if e := config.ExecProvider; e != nil {
		said.Exec = []any{e.Command, e.Args, e.Env, e.APIVersion, e.ProvideClusterInfo, e.Config, environment(os.Environ())}
	}
	if config.Proxy != nil {
		proxy, err := config.Proxy(nil)
		if err == nil && proxy != nil {
			said.Proxy = proxy.String()
		}
	}
	for _, f := range []struct {
		data []byte
		path string
	}{{config.CAData, config.CAFile}, {config.CertData, config.CertFile}, {config.KeyData, config.KeyFile}} {
		data := f.data
		if len(data) == 0 && f.path != "" {
			var err error
			if data, err = os.ReadFile(f.path); err != nil {
				return "", err
			}
		}
		said.Files = append(said.Files, fmt.Sprintf("%x", sha256.Sum256(data)))
	}
	text, err := json.Marshal(said)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16]), nil
}

// terminal are variables of the environment that tell where a command runs, not as whom. What ends with * begins a name.
var terminal = []string{
	"_", "PWD", "OLDPWD", "SHLVL", "TERM*", "COLORTERM", "COLUMNS", "LINES", "NO_COLOR", "LS_COLORS", "PS1", "HIST*", "WINDOWID",
	"TMUX*", "STY", "WINDOW", "SSH_TTY", "SSH_CONNECTION", "SSH_CLIENT", "GPG_TTY", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DESKTOP_STARTUP_ID", "XDG_SESSION_*",
	"XDG_ACTIVATION_TOKEN", "LANG", "LC_*", "EDITOR", "VISUAL", "PAGER", "LESS*", "GOMAXPROCS", "GOGC", "GOMEMLIMIT", "GODEBUG",
	"VSCODE_*", "ITERM_*", "WT_*", "KITTY_*", "ALACRITTY_*", "VTE_VERSION", "KONSOLE_*", "WEZTERM_*", "ZELLIJ*",
	"INVOCATION_ID", "JOURNAL_STREAM",
}

// environment returns the variables that may tell a program for whom it gets tokens: all but those of the terminal, because
// two that are taken for one would read each other's objects, and one that is taken for two only reads the cluster.
func environment(variables []string) []string {
	kept := slices.DeleteFunc(slices.Clone(variables), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.ContainsFunc(terminal, func(pattern string) bool {
			prefix, begins := strings.CutSuffix(pattern, "*")
			return name == pattern || begins && strings.HasPrefix(name, prefix)
		})
	})
	slices.Sort(kept)
	return kept
}
