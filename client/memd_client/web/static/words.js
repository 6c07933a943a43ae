// What the page says, in English and Chinese, and numbers and dates as this person writes them.

const CHINESE = {
  Duplicates: "重复", copy: "内容相同", "No note says what another does.": "没有内容相同的笔记。", "There are more.": "还有更多。", configuration: "配置", "waits for memd-ctl reload": "等待 memd-ctl reload", Editor: "编辑器", window: "窗口", "without a date": "无日期", done: "完成", refused: "被拒绝", None: "无",
  Search: "搜索", Browse: "浏览", State: "状态", Agent: "智能体", Question: "问题", Source: "来源", All: "全部", Notes: "笔记",
  Conversations: "对话", Since: "从", Until: "到", Tag: "标签", Path: "路径", Why: "为什么", Folders: "文件夹", Days: "日期",
  "More": "更多", "Nothing was found.": "没有找到。", "lines": "行", "score": "得分", "weak": "弱", "superseded": "已被取代",
  "also in": "另见", "Page": "页面", "Lines": "原文", "Chunks": "分块", "Open in the editor": "在编辑器中打开", "by meaning": "语义",
  "by words": "关键词", "files": "文件", "chunks": "分块", "waiting": "等待中", "Top": "顶层", "not indexed": "未索引",
  "The file is longer than is shown.": "文件过长,只显示一部分。", "what was taken out": "已去除", "user": "用户", "assistant": "助手",
  "Select something to read it here.": "选择一项即可在此阅读。", "of its time": "属于所问时间", "repeats the question": "重复问题",
  "in another script": "其他文字", "cut by": "被剔除:", "bytes": "字节", "The results may lack what was written a moment ago.": "结果可能缺少刚写入的内容。",
  "missing just now": "暂时缺少", "memory": "内存", "provider": "提供方", "health": "健康",
  "works": "正常", "Open this page with `memd-ctl web`; an address opens it once, for a minute.": "请用 `memd-ctl web` 打开此页;地址一分钟内有效,只能用一次。",
  "The server of this page has ended.": "此页的服务已结束。", "Check everything": "全面检查", "Copy": "复制", "vectors": "向量", "slowest": "最慢", "version": "版本",
  "sent so far": "至今已发送", "texts": "段文本", "tokens": "个词元", "nothing: all stays on this machine": "无:全部留在本机", "embedding": "嵌入",
  "changed, not indexed yet": "已改动、尚未索引", "left out": "未收录", "rebuild": "重建", "reads": "正在读取", "the last searches": "最近的搜索",
  "half within": "半数不超过", "passes": "索引记录", "changed": "更新", "removed": "移除", "redacted": "已去除的秘密",
};

export const language = navigator.language.startsWith("zh") ? "zh" : "en";

export function say(text) {
  return language === "zh" ? (CHINESE[text] ?? text) : text;
}

export function number(value, digits = 0) {
  return new Intl.NumberFormat(navigator.language, { maximumFractionDigits: digits }).format(value);
}

/** A moment, in seconds since 1970. */
export function moment(seconds, timeStyle = "short") {
  return new Intl.DateTimeFormat(navigator.language, { dateStyle: "medium", timeStyle }).format(seconds * 1000);
}

/** A day as the daemon writes it, or the first and the last with a slash between. */
export function day(date) {
  const form = new Intl.DateTimeFormat(navigator.language, { dateStyle: "medium", timeZone: "UTC" });
  return date.split("/").map((one) => (Number.isNaN(Date.parse(one)) ? one : form.format(new Date(one)))).join(" – ");
}
