# Compares the answers of all verbs about a bundle with those of the API server. Prints a row of a table.
#
#   usage: check.sh PATH SCOPE KNOWN UNKNOWN     (SERVED and ADMIN are kubeconfigs)
path=$1 scope=$2 known=$3 unknown=$4 failed=0

# expect WANT CODE COMMAND compares the sorted output and the exit code of a command.
expect() {
	want=$1 code=$2
	shift 2
	out=$("$@" 2>errors.txt) && got=0 || got=$?
	if [ $got != $code ] || [ "$(echo "$out" | sort)" != "$want" ]; then
		echo "$path: $*: exit code $got, want $code; prints $out, want $want; $(tail -n 3 errors.txt)" >&2
		failed=1
	fi
}
live() { kubectl --kubeconfig "$ADMIN" "$@"; }
served() { kubectl --kubeconfig "$SERVED" "$@"; }
rows() { "$@" --no-headers | grep -c .; }
words() { echo "$1" | tr , ' '; }

names=$(live get "$known" $scope -o name | sort)
expect "$names" 0 crdcache dump "$known" $scope -o name --from "$path"
expect "$names" 0 crdcache dump "$known" $scope -o name --kubeconfig "$SERVED" --cache none
expect "$names" 0 served get "$known" $scope -o name
read_types() { crdcache resources $(words "$known") -o name --from "$path" | wc -l; } # 5 if other types are unknown
expect "$(words "$known" | wc -w)" 0 read_types
in=$scope
[ "$in" != -A ] || in= # diff reads all namespaces
case $path in
manifest.yaml | kustomize.yaml) # the wanted state
	expect "" 1 sh -c "crdcache diff $path live $known $in --kubeconfig $ADMIN | grep '^[+-]'"
	;;
*) expect "" 0 crdcache diff "$path" live "$known" $in --kubeconfig "$ADMIN" ;;
esac
for type in $(words "$known"); do
	count=$(live get "$type" $scope -o name | grep -c .)
	code=0
	[ "$count" != 0 ] || code=1 # of grep
	expect "$count" $code rows crdcache dump "$type" $scope --from "$path"
	expect "$count" 0 crdcache query "$type" $scope --count --from "$path"
	served explain "$type" >/dev/null || failed=1
done
# nothing TYPE CODE expects no object, and an error.
nothing() {
	expect "" $2 crdcache dump "$1" $scope --from "$path"
	expect "" $2 crdcache query "$1" $scope --count --from "$path"
	expect "" $2 crdcache dump "$1" $scope --kubeconfig "$SERVED"
	expect "" 5 crdcache diff "$path" live "$1" $in --kubeconfig "$ADMIN"
	expect "" 1 served get "$1" $scope
}
for type in $(words "$unknown"); do nothing "$type" 5; done
for type in pods deployments nodes configmaps daemonsets secrets workloads environments releases routes; do
	case ,$known,$unknown, in
	*,$type,*) ;;
	*) nothing "$type" 1 ;; # the bundle has no trace of it
	esac
done
echo "| $path | $(words "$known") | $(echo "$names" | grep -c .) | $(words "$unknown") |"
exit $failed
