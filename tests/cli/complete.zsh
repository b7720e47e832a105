# What does zsh suggest for a line as far as it is typed? One word a line.
#
# usage: zsh -f complete.zsh PROGRAM LINE
#
# zsh completes only in its line editor, so an inner zsh has a terminal, in which `compadd` prints what is added in place of
# showing it.
zmodload zsh/zpty
zpty inner zsh -f
heard=

# Reads until the inner zsh has said $1 alone on a line.
until_said() {
  local part
  heard=
  while zpty -r inner part; do
    heard+=$part
    [[ $heard == *$1$'\r\n'* ]] && return
  done
}

zpty -w inner "PS1= PROMPT= RPROMPT=; unsetopt zle_bracketed_paste 2>/dev/null; unset zle_bracketed_paste; stty -echo"
zpty -w inner "autoload -U compinit && compinit -u -C -d $HOME/compdump; eval \"\$('$1' completion zsh)\""
zpty -w inner 'compadd () {
  [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]] && { builtin compadd "$@"; return; }
  typeset -a __hits
  builtin compadd -A __hits "$@"
  builtin compadd "$@"
  (( $#__hits )) && print -rl -- "" "hit|"${^__hits}
}
finish () { print -rl -- "" all-was-said; exit }
comppostfuncs=(finish)
bindkey "^I" complete-word
zstyle ":completion:*" list-max 10000
LISTMAX=0
zstyle ":completion:*" insert-tab false
setopt no_auto_menu no_list_beep'
zpty -w inner 'print -r -- "now"-ready'
until_said now-ready
zpty -n -w inner "$2"$'\t'
until_said all-was-said
zpty -d inner
print -rl -- ${(u)${(M)${(f)heard//$'\r'/$'\n'}:#hit\|*}#hit\|}
