module kilit.dev/cluster/pause

go 1.26.0
